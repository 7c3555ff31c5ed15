SELECT DISTINCT node FROM beats
WHERE component = 'launcher' AND run = {run:String} AND state != 'gone'
    AND beats.at > {since:DateTime64(6, 'UTC')} AND beats.at <= {until:DateTime64(6, 'UTC')}
    AND node NOT IN (SELECT node FROM host WHERE ts > {agents_since:DateTime64(6, 'UTC')})
ORDER BY node
