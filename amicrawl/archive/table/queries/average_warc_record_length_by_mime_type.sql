-- How large are records of each detected media type, and what share of the storage do they take?
-- Lengths are those of the compressed records. With the reasons of truncation and the 25 most
-- frequent suffixes of URLs.
--
-- group: published
-- columns: crawl, subset, content_mime_detected, warc_record_length, url_path
-- optional: content_truncated
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- dialect: the original sorts and cuts a histogram of suffixes with map_filter and array_sort;
-- dialect: here they are ranked by row_number

WITH captures AS (
  SELECT content_mime_detected AS mime,
         warc_record_length AS length,
         content_truncated AS truncated,
         lower(regexp_extract(url_path, '\.([A-Za-z0-9]{1,10})$', 1)) AS suffix
  FROM ccindex
  WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
),
sizes AS (
  SELECT mime,
         count(*) AS pages,
         round(avg(length), 1) AS mean_length,
         CAST(sum(length) AS BIGINT) AS total_length,
         round(100.0 * count(truncated) / count(*), 2) AS percent_truncated,
         histogram(truncated) FILTER (WHERE truncated IS NOT NULL) AS reasons
  FROM captures
  GROUP BY mime
),
suffixes AS (
  SELECT mime, suffix, count(*) AS pages,
         row_number() OVER (PARTITION BY mime ORDER BY count(*) DESC, suffix) AS place
  FROM captures
  WHERE suffix <> ''
  GROUP BY mime, suffix
),
top_suffixes AS (
  SELECT mime,
         map(array_agg(suffix ORDER BY place), array_agg(pages ORDER BY place)) AS suffixes
  FROM suffixes
  WHERE place <= 25
  GROUP BY mime
)
SELECT sizes.mime, sizes.pages,
       round(100.0 * sizes.pages / sum(sizes.pages) OVER (), 2) AS percent_of_pages,
       sizes.mean_length, sizes.total_length,
       round(100.0 * sizes.total_length / sum(sizes.total_length) OVER (), 2) AS percent_of_storage,
       sizes.percent_truncated, sizes.reasons, top_suffixes.suffixes
FROM sizes
LEFT JOIN top_suffixes ON sizes.mime IS NOT DISTINCT FROM top_suffixes.mime
ORDER BY sizes.total_length DESC, sizes.mime
