-- How many pages of each language does each top-level domain have?
-- Only pages with exactly one language count.
--
-- group: published
-- columns: crawl, subset, content_languages, url_host_tld
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 1000: fewest pages of a line
-- dialect: as in the original

SELECT content_languages AS language, url_host_tld AS tld, count(*) AS pages
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND content_languages NOT LIKE '%,%'
GROUP BY content_languages, url_host_tld
HAVING count(*) >= $at_least
ORDER BY pages DESC, language, tld
