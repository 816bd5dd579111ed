-- In which languages are the pages of one top-level domain?
-- The first language of a page counts.
--
-- group: collection
-- columns: crawl, subset, url_host_tld, content_languages
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter tld (text) = gov: the top-level domain
-- dialect: ours

SELECT nullif(regexp_extract(content_languages, '^([a-z]+)', 1), '') AS language, count(*) AS pages
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND url_host_tld = $tld
GROUP BY 1
ORDER BY pages DESC, language
