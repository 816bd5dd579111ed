-- How many captures came with each HTTP status?
-- -1 stands for captures without one, revisits among them. Common Crawl keeps what did not succeed
-- in the subset crawldiagnostics; EOT keeps everything in warc.
--
-- group: published
-- columns: crawl, subset, fetch_status
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- dialect: the original reads the subset crawldiagnostics only

SELECT fetch_status AS status, count(*) AS captures
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY fetch_status
ORDER BY captures DESC, status
