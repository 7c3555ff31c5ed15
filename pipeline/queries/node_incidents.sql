SELECT * FROM (SELECT * FROM incidents ORDER BY at DESC LIMIT 1 BY incident)
WHERE node = {node:String} OR incident IN (SELECT incident FROM findings WHERE node = {node:String} AND incident != '')
ORDER BY new_state = 'resolved', at DESC
LIMIT {limit:UInt32}
