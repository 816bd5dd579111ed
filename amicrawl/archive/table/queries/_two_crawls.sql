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
