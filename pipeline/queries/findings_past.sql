SELECT * FROM (
    SELECT * FROM findings WHERE incident IN {incidents:Array(String)} ORDER BY at DESC LIMIT 1 BY finding
)
WHERE new_state = 'cleared'
ORDER BY at
