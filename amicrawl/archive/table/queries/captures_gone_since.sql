-- Which pages have gone since a moment?
-- Captured before it, and now missing: the newest fetch has the status 404 or 410, or the host name does not
-- exist. A URL that was not requested since, or failed otherwise, is not listed. UTC.
--
-- group: crawls
-- columns: url, status, error, fetched_at
-- parameter since (time) = 1970-01-01: the moment
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH before AS (
  SELECT url, max(timestamp_millis(fetched_at)) AS captured
  FROM captures
  WHERE timestamp_millis(fetched_at) < CAST($since AS TIMESTAMP)
    AND error = ''
    AND (status BETWEEN 200 AND 299 OR status = 304)
  GROUP BY url
),
since AS (
  SELECT url, status, error, timestamp_millis(fetched_at) AS fetched,
         row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE timestamp_millis(fetched_at) >= CAST($since AS TIMESTAMP)
    AND error NOT LIKE 'repeated-seed%'
)
SELECT since.url, since.fetched, since.status, since.error, before.captured AS captured_before
FROM since JOIN before ON before.url = since.url
WHERE since.newest = 1
  AND (since.status IN (404, 410) OR since.error LIKE 'name-not-found%')
ORDER BY since.url
LIMIT $limit
