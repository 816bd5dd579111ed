-- Which responses are incomplete, and why?
-- Those whose URL has not been captured whole since.
--
-- group: pages
-- columns: url, status, truncated, body_length, error, fetched_at
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH fetches AS (
  SELECT url, status, truncated, body_length,
         row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE error = ''
)
SELECT url, truncated AS reason, status, body_length AS bytes
FROM fetches
WHERE newest = 1
  AND truncated <> ''
ORDER BY reason, url
LIMIT $limit
