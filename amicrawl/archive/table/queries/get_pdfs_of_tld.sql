-- Where are all PDFs of one top-level domain?
-- The detected type decides, and the declared one where none was detected.
--
-- group: collection
-- columns: crawl, subset, url, url_surtkey, url_host_tld, fetch_time, fetch_status,
-- columns: content_mime_type, content_mime_detected, warc_filename, warc_record_offset,
-- columns: warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter tld (text) = gov: the top-level domain
-- dialect: ours

SELECT url, fetch_time, warc_filename, warc_record_offset, warc_record_length
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND url_host_tld = $tld
  AND fetch_status = 200
  AND coalesce(content_mime_detected, lower(content_mime_type)) = 'application/pdf'
ORDER BY url_surtkey, fetch_time, warc_filename, warc_record_offset
