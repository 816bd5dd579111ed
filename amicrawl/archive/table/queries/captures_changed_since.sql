-- Which pages have changed since a moment?
-- Those whose newest payload is not the one that they had last before it. UTC.
--
-- group: crawls
-- columns: url, status, digest, error, fetched_at
-- parameter since (time) = 1970-01-01: the moment
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH payloads AS (
  SELECT url, status, digest, timestamp_millis(fetched_at) AS captured
  FROM captures
  WHERE error = ''
    AND digest <> ''
),
before AS (
  SELECT url, max_by(digest, captured) AS digest, max(captured) AS captured
  FROM payloads
  WHERE captured < CAST($since AS TIMESTAMP)
  GROUP BY url
),
since AS (
  SELECT url, max_by(digest, captured) AS digest, max_by(status, captured) AS status,
         max(captured) AS captured
  FROM payloads
  WHERE captured >= CAST($since AS TIMESTAMP)
  GROUP BY url
)
SELECT since.url, since.captured, since.status, before.captured AS captured_before
FROM since JOIN before ON before.url = since.url
WHERE since.digest <> before.digest
ORDER BY since.url
LIMIT $limit
