SELECT DISTINCT family FROM devices
