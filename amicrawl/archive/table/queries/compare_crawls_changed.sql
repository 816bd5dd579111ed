-- Which URLs have another payload than in an earlier crawl?
-- A URL is there if its newest capture in a crawl has a status from 200 to 299 or 304, or is a revisit
-- without one. URLs are compared by their keys.
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
SELECT after.url, after.fetch_time, before.fetch_time AS captured_before,
       after.content_digest AS digest, before.content_digest AS digest_before
FROM after JOIN before ON before.url_surtkey = after.url_surtkey
WHERE after.is_there
  AND before.is_there
  AND after.content_digest <> before.content_digest
ORDER BY after.url_surtkey
LIMIT $limit
