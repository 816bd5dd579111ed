-- Where are the records of one media type?
--
-- group: published
-- columns: crawl, subset, url, url_surtkey, fetch_time, content_mime_type,
-- columns: content_mime_detected, warc_filename, warc_record_offset, warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter mime (text) = application/pdf: the type as detected
-- parameter part (text) = pdf: or what the declared type contains, lower case
-- parameter limit (whole) = 1000: most rows
-- dialect: the original does not sort

SELECT url, warc_filename, warc_record_offset, warc_record_length,
       content_mime_type, content_mime_detected
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND (content_mime_detected = $mime OR lower(content_mime_type) LIKE concat('%', $part, '%'))
ORDER BY url_surtkey, fetch_time, warc_filename, warc_record_offset
LIMIT $limit
