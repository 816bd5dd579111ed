-- Which domains of one top-level domain have many pages?
--
-- group: published
-- columns: crawl, subset, url_host_tld, url_host_registered_domain
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter tld (text) = gov: the top-level domain
-- parameter at_least (whole) = 100: fewest pages of a domain
-- dialect: as in the original

SELECT url_host_registered_domain AS domain, count(*) AS pages
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND url_host_tld = $tld
GROUP BY url_host_registered_domain
HAVING count(*) >= $at_least
ORDER BY pages DESC, domain
