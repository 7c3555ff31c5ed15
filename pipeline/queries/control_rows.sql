-- How many rows the tables have that a launcher may wait for: they are only ever added to, so the
-- same number means that nothing is new. Answered from the parts' headers, without reading a row.
SELECT (SELECT count() FROM actions) + (SELECT count() FROM attempts) + (SELECT count() FROM runs) AS row_count
