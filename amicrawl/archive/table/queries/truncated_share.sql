-- What share of the captures was cut off, and why?
-- The line without a reason is what is whole. Only tables of Common Crawl's schema know.
--
-- group: collection
-- columns: crawl, subset, content_truncated
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- dialect: ours

SELECT content_truncated AS reason,
       count(*) AS captures,
       round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS percent
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY content_truncated
ORDER BY captures DESC, reason
