-- What was first found on one page?
-- Each URL once, with its newest fetch. The URL of the page stands as in the column url.
--
-- group: ways
-- columns: url, via, link, hops, status, error, fetched_at
-- parameter url (text) = http://example.com/: the page
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH fetches AS (
  SELECT *, row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE via = $url
    AND error NOT LIKE 'repeated-seed%'
)
SELECT url, link, hops, status, error
FROM fetches
WHERE newest = 1
ORDER BY link, url
LIMIT $limit
