-- How many pages, hosts and domains does each top-level domain have?
-- Hosts that are addresses have no top-level domain; they make up the line without one.
--
-- group: published
-- columns: crawl, subset, url_host_tld, url_host_name, url_host_registered_domain
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- dialect: as in the original

SELECT url_host_tld AS tld,
       count(*) AS pages,
       count(DISTINCT url_host_name) AS hosts,
       count(DISTINCT url_host_registered_domain) AS domains
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY url_host_tld
ORDER BY pages DESC, tld
