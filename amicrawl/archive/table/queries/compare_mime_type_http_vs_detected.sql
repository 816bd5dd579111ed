-- Which media type did servers declare, and which was detected?
--
-- group: published
-- columns: crawl, subset, content_mime_type, content_mime_detected
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- dialect: as in the original

SELECT content_mime_type AS declared, content_mime_detected AS detected, count(*) AS captures
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY content_mime_type, content_mime_detected
ORDER BY captures DESC, declared, detected
