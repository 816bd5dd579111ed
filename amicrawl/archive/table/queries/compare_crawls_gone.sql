-- Which URLs of a crawl are no longer in a later one?
-- A URL is there if its newest capture in a crawl has a status from 200 to 299 or 304, or is a revisit
-- without one. URLs are compared by their keys.
-- Without a status they were not captured in the later crawl at all: it may not have requested them.
--
-- group: crawls
-- columns: crawl, subset, url, url_surtkey, fetch_time, fetch_status, content_digest, content_mime_type
-- columns: warc_filename, warc_record_offset
-- parameter before (text) = : the earlier crawl; empty for the newest one but `after`
-- parameter after (text) = : the later crawl; empty for the newest one
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

-- include _two_crawls
SELECT before.url, before.fetch_time AS captured_before, after.fetch_status AS status
FROM before LEFT JOIN after ON after.url_surtkey = before.url_surtkey
WHERE before.is_there
  AND NOT coalesce(after.is_there, false)
ORDER BY before.url_surtkey
LIMIT $limit
