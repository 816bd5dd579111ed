-- How many pages and hosts have host names of how many labels?
-- An IPv4 address counts as four labels, as in the original.
--
-- group: published
-- columns: crawl, subset, url_host_name
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- dialect: as in the original

SELECT cardinality(split(url_host_name, '.')) AS labels,
       count(*) AS pages,
       count(DISTINCT url_host_name) AS hosts
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY 1
ORDER BY labels
