-- Which links lead to something that is missing or failed?
-- Of each URL the newest fetch, with the page that it was first found on.
--
-- group: ways
-- columns: url, via, link, status, error, fetched_at
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH fetches AS (
  SELECT url, via, link, status, error,
         row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE error NOT LIKE 'repeated-seed%'
)
SELECT via AS page_url, url, link, status, error
FROM fetches
WHERE newest = 1
  AND via <> ''
  AND (status >= 400 OR error <> '')
ORDER BY page_url, url
LIMIT $limit
