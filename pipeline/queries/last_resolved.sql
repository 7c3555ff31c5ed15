SELECT at FROM incidents WHERE new_state = 'resolved' ORDER BY at DESC LIMIT 1
