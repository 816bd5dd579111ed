-- Which seeds need another attempt?
-- Those whose newest fetch failed, or had status 429 or 5xx, and where redirects lead; without robots.txt and
-- what pages led to.
--
-- group: crawl
-- columns: url, error, status, meta_json, fetched_at
-- optional: link
-- dialect: ours

WITH fetches AS (
  SELECT *, row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE error NOT LIKE 'repeated-seed%'
)
SELECT url, status, error, meta_json
FROM fetches
WHERE newest = 1
  AND coalesce(link, '') IN ('', 'seed', 'redirect')
  AND (error <> '' OR status = 429 OR status >= 500)
ORDER BY url
