-- Which captures were declared as one media type and are another?
--
-- group: collection
-- columns: crawl, subset, url, url_surtkey, fetch_time, content_mime_type,
-- columns: content_mime_detected, warc_filename, warc_record_offset
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT url, content_mime_type AS declared, content_mime_detected AS detected,
       warc_filename, warc_record_offset
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND content_mime_detected IS NOT NULL
  AND content_mime_type <> 'warc/revisit'
  AND lower(content_mime_type) <> content_mime_detected
ORDER BY url_surtkey, fetch_time, warc_filename, warc_record_offset
LIMIT $limit
