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

WITH ends AS (
  SELECT crawl, max(fetch_time) AS ended
  FROM ccindex
  WHERE crawl IS NOT NULL
  GROUP BY crawl
),
later AS (
  SELECT coalesce(nullif($after, ''), max_by(crawl, ended)) AS crawl
  FROM ends
),
earlier AS (
  SELECT coalesce(nullif($before, ''), max_by(ends.crawl, ends.ended)) AS crawl
  FROM ends JOIN later ON ends.crawl <> later.crawl
),
captures AS (
  SELECT crawl, url, url_surtkey, fetch_time, fetch_status, content_digest,
         fetch_status BETWEEN 200 AND 299
           OR fetch_status = 304
           OR fetch_status = -1 AND coalesce(content_mime_type, '') = 'warc/revisit' AS is_there,
         row_number() OVER (
           PARTITION BY crawl, url_surtkey
           ORDER BY fetch_time DESC, warc_filename DESC, warc_record_offset DESC
         ) AS newest
  FROM ccindex
  WHERE ($subset = '' OR coalesce(subset, 'warc') = $subset)
),
before AS (
  SELECT captures.*
  FROM captures JOIN earlier ON earlier.crawl = captures.crawl
  WHERE newest = 1
),
after AS (
  SELECT captures.*
  FROM captures JOIN later ON later.crawl = captures.crawl
  WHERE newest = 1
)
SELECT after.url, after.fetch_time, before.fetch_time AS captured_before,
       after.content_digest AS digest, before.content_digest AS digest_before
FROM after JOIN before ON before.url_surtkey = after.url_surtkey
WHERE after.is_there
  AND before.is_there
  AND after.content_digest <> before.content_digest
ORDER BY after.url_surtkey
LIMIT $limit
