-- Which URLs were captured for the first time since a moment?
-- UTC.
--
-- columns: url, error, fetched_at
-- optional: via
-- parameter since (time) = 1970-01-01: the moment
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT url, make_timestamp(min(fetched_at) * 1000) AS captured, arg_min(via, fetched_at) AS via
FROM captures
WHERE error = ''
GROUP BY url
HAVING captured >= CAST($since AS TIMESTAMP)
ORDER BY captured, url
LIMIT $limit
