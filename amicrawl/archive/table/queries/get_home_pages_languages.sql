-- Which home pages are in one of many rare languages?
-- Only pages with exactly one language are found: the whole list of a page is compared.
--
-- group: published
-- columns: crawl, subset, url, url_surtkey, fetch_time, url_path, url_query, content_languages
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter languages (text) = ast,bre,cos,cym,eus,fao,fry,gla,gle,glg,isl,ltz,mlt,nno,oci,roh,sco,swa,tgl,yor: codes separated by commas
-- dialect: the original has an array of its own choice of languages

SELECT url, content_languages AS languages
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND url_path = '/'
  AND url_query IS NULL
  AND contains(split($languages, ','), content_languages)
ORDER BY url_surtkey, fetch_time, url
