-- Which payloads have another URL than in an earlier crawl?
-- A URL is there if its newest capture in a crawl has a status from 200 to 299 or 304, or is a revisit
-- without one. URLs are compared by their keys.
-- The payload had one URL in the earlier crawl, which is no longer there, and has one in the later
-- crawl, which is new.
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
, lost AS (
  SELECT before.content_digest, min(before.url) AS url, min(after.fetch_status) AS status
  FROM before LEFT JOIN after ON after.url_surtkey = before.url_surtkey
  WHERE before.is_there
    AND NOT coalesce(after.is_there, false)
  GROUP BY before.content_digest
  HAVING count(*) = 1
),
gained AS (
  SELECT after.content_digest, min(after.url) AS url
  FROM after LEFT JOIN before ON before.url_surtkey = after.url_surtkey
  WHERE after.is_there
    AND NOT coalesce(before.is_there, false)
  GROUP BY after.content_digest
  HAVING count(*) = 1
)
SELECT lost.url, gained.url AS moved_to, lost.status, lost.content_digest AS digest
FROM lost JOIN gained ON gained.content_digest = lost.content_digest
ORDER BY lost.url
LIMIT $limit
