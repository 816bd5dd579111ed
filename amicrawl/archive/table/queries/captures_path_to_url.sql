-- How did the crawl reach a URL?
-- The URL, the one that it was first found on, and so on up to a start URL, at most 100 steps. Of each the
-- first fetch. The URL is written as in the column url.
--
-- group: ways
-- columns: url, via, link, status, error, fetched_at
-- parameter url (text) = http://example.com/: the URL
-- dialect: ours

WITH RECURSIVE found AS (
  SELECT url, via, link, status, row_number() OVER (PARTITION BY url ORDER BY fetched_at) AS nth
  FROM captures
  WHERE error NOT LIKE 'repeated-seed%'
),
way AS (
  SELECT 0 AS steps, url, via, link, status
  FROM found
  WHERE nth = 1
    AND url = $url
  UNION ALL
  SELECT way.steps + 1, found.url, found.via, found.link, found.status
  FROM way JOIN found ON found.url = way.via
  WHERE found.nth = 1
    AND way.via <> ''
    AND way.steps < 100
)
SELECT steps, url, link, status
FROM way
ORDER BY steps
