-- How many pages came from each site of a ranking?
-- Made for the ranking of a million sites by Alexa; any list of rank,site does.
--
-- group: published
-- columns: crawl, subset, url_host_registered_domain
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter sites (ranking) = : CSV file of rank,site; without it, the most captured domains of the table
-- dialect: the ranking is a table of that name, filled from the CSV file, instead of an external
-- dialect: table

SELECT ranking.rank, ranking.site, count(*) AS pages
FROM ccindex
JOIN ranking ON ccindex.url_host_registered_domain = ranking.site
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY ranking.rank, ranking.site
ORDER BY ranking.rank, ranking.site
