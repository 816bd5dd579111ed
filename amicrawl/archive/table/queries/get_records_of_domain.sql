-- Where are the records of one domain?
--
-- group: published
-- columns: crawl, subset, url, url_surtkey, fetch_time, url_host_registered_domain,
-- columns: warc_filename, warc_record_offset, warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter domain (text) = example.com: the registered domain
-- parameter limit (whole) = 1000: most rows
-- dialect: the original does not sort

SELECT url, warc_filename, warc_record_offset, warc_record_length
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND url_host_registered_domain = $domain
ORDER BY url_surtkey, fetch_time, warc_filename, warc_record_offset
LIMIT $limit
