-- Which payloads were captured many times?
--
-- group: collection
-- columns: crawl, subset, url, url_surtkey, content_digest, warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 2: fewest captures of a payload
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT content_digest AS digest,
       count(*) AS captures,
       count(DISTINCT url_surtkey) AS urls,
       CAST(sum(warc_record_length) AS BIGINT) AS bytes,
       min(url) AS example
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND content_digest IS NOT NULL
GROUP BY content_digest
HAVING count(*) >= $at_least
ORDER BY captures DESC, digest
LIMIT $limit
