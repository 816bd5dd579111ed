-- Which hosts took longest to respond?
-- Only indexes of amicrawl know how long a fetch took.
--
-- group: crawl
-- columns: host, duration_ms, error
-- parameter limit (whole) = 25: most rows
-- dialect: ours

SELECT host, count(*) AS captures,
       CAST(median(duration_ms) AS BIGINT) AS median_ms,
       max(duration_ms) AS longest_ms
FROM captures
WHERE error = ''
GROUP BY host
ORDER BY median_ms DESC, host
LIMIT $limit
