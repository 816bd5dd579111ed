-- Which URLs were captured for the first time since a moment?
-- UTC.
--
-- group: crawls
-- columns: url, error, fetched_at
-- optional: via
-- parameter since (time) = 1970-01-01: the moment
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT url, timestamp_millis(min(fetched_at)) AS captured, min_by(via, fetched_at) AS via
FROM captures
WHERE error = ''
GROUP BY url
HAVING captured >= CAST($since AS TIMESTAMP)
ORDER BY captured, url
LIMIT $limit
