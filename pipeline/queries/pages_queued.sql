SELECT DISTINCT notification FROM notifications WHERE incident IN {incidents:Array(String)}
