-- Where is the newest robots.txt record of each URL of listed sites?
-- In a table without the subset robotstxt query with subset= and get those with the path
-- /robots.txt.
--
-- group: published
-- columns: crawl, subset, url, url_path, url_host_registered_domain, fetch_time, fetch_status,
-- columns: content_mime_type, content_mime_detected, warc_filename, warc_record_offset,
-- columns: warc_record_length
-- optional: fetch_redirect
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = robotstxt: only this subset (rows without one count as warc); empty for all
-- parameter sites (ranking) = : CSV file of rank,site; without it, the most captured domains of the table
-- dialect: the original joins on a column domain that its ranking lacks; site is meant

WITH versions AS (
  SELECT ranking.site, ranking.rank, ccindex.*,
         row_number() OVER (
           PARTITION BY ccindex.url
           ORDER BY ccindex.fetch_time DESC, ccindex.warc_filename DESC, ccindex.warc_record_offset DESC
         ) AS version
  FROM ccindex
  JOIN ranking ON ccindex.url_host_registered_domain = ranking.site
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
    AND ($subset <> '' OR url_path = '/robots.txt')
)
SELECT site, rank, url, fetch_time, warc_filename, warc_record_offset, warc_record_length,
       fetch_status, content_mime_type, content_mime_detected, fetch_redirect
FROM versions
WHERE version = 1
ORDER BY rank, site, url
