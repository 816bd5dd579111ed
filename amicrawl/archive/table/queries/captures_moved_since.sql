-- Which pages have moved since a moment, and where to?
-- Captured before it; since then a redirect (evidence: its status), or missing, while the same payload came
-- from one other URL that was captured for the first time (evidence: payload). UTC.
--
-- group: crawls
-- columns: url, status, error, digest, body_length, final_url, fetched_at
-- parameter since (time) = 1970-01-01: the moment
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH fetches AS (
  SELECT url, status, error, digest, body_length, final_url,
         timestamp_millis(fetched_at) < CAST($since AS TIMESTAMP) AS is_before,
         error = '' AND (status BETWEEN 200 AND 299 OR status = 304) AS is_captured,
         fetched_at
  FROM captures
  WHERE error NOT LIKE 'repeated-seed%'
),
before AS (
  SELECT url, max_by(digest, fetched_at) AS digest
  FROM fetches
  WHERE is_before
    AND is_captured
  GROUP BY url
),
since AS (
  SELECT *, row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM fetches
  WHERE NOT is_before
),
payloads AS (
  SELECT since.digest, min(since.url) AS url
  FROM since LEFT JOIN before ON before.url = since.url
  WHERE since.newest = 1
    AND since.is_captured
    AND since.body_length > 0
    AND before.url IS NULL
  GROUP BY since.digest
  HAVING count(DISTINCT since.url) = 1
),
moved AS (
  SELECT since.url,
         CASE WHEN since.status IN (404, 410) THEN payloads.url ELSE since.final_url END AS moved_to,
         CASE WHEN since.status IN (404, 410) THEN 'payload'
              ELSE concat('status ', since.status) END AS evidence
  FROM since
  JOIN before ON before.url = since.url
  LEFT JOIN payloads ON payloads.digest = before.digest
  WHERE since.newest = 1
    AND (since.status IN (404, 410)
         OR since.status IN (301, 302, 303, 307, 308) AND since.final_url <> since.url)
)
SELECT url, moved_to, evidence
FROM moved
WHERE moved_to IS NOT NULL
ORDER BY url
LIMIT $limit
