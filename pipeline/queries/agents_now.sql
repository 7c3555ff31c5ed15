SELECT node, max(ts) AS last FROM host WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY node
