-- Which hosts had not changed since the crawl before?
-- Of each URL the newest fetch counts, so that the crawls before are not in it. UTC.
--
-- group: crawls
-- columns: url, host, unchanged, error, fetched_at
-- parameter since (time) = 1970-01-01: when the crawl began; what was not fetched since is left out
-- dialect: ours

WITH fetches AS (
  SELECT *, row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE timestamp_millis(fetched_at) >= CAST($since AS TIMESTAMP)
    AND error NOT LIKE 'repeated-seed%'
)
SELECT host,
       count(*) AS captures,
       count(*) FILTER (WHERE unchanged) AS unchanged,
       round(100.0 * count(*) FILTER (WHERE unchanged) / count(*), 2) AS percent
FROM fetches
WHERE newest = 1
  AND error = ''
GROUP BY host
ORDER BY unchanged DESC, host
