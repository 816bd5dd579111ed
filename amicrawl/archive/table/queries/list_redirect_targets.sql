-- Where do redirects lead?
-- Only tables of Common Crawl's schema know.
--
-- group: collection
-- columns: crawl, subset, url, url_surtkey, fetch_time, fetch_status, fetch_redirect
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT url, fetch_status AS status, fetch_redirect AS target, fetch_time
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND fetch_redirect IS NOT NULL
ORDER BY url_surtkey, fetch_time, url
LIMIT $limit
