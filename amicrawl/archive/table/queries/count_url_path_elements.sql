-- Which words do the paths of URLs consist of?
-- Empty words are left out, percent-encoding is removed where UTF-8 comes of it.
--
-- group: published
-- columns: crawl, subset, url_path
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 100: how often a word has to occur
-- dialect: the original filters and decodes the list with filter and transform before it unnests
-- dialect: it; doing so afterwards needs no lambda, which every engine writes differently

SELECT coalesce(try(url_decode(p.element)), p.element) AS element, count(*) AS frequency
FROM ccindex
CROSS JOIN UNNEST(split(url_path, '/')) AS p (element)
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND p.element <> ''
GROUP BY 1
HAVING count(*) >= $at_least
ORDER BY frequency DESC, element
