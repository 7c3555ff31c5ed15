SELECT * FROM (SELECT * FROM findings ORDER BY at DESC LIMIT 1 BY finding) WHERE new_state = 'open' ORDER BY at
