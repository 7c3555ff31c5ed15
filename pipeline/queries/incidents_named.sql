SELECT * FROM incidents WHERE incident IN {incidents:Array(String)} ORDER BY incident, at DESC LIMIT 1 BY incident
