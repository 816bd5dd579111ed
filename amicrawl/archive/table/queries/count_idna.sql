-- Which hosts have internationalised names?
-- In their ASCII form (xn--...), or, in old tables, in Unicode.
--
-- group: published
-- columns: crawl, subset, url_host_name, url_host_registered_domain
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- dialect: regexp_like is a macro (regexp_matches in DuckDB); \P{ASCII} of the original is
-- dialect: [^\x00-\x7F] here

SELECT url_host_registered_domain AS domain, url_host_name AS host, count(*) AS captures
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND regexp_like(url_host_name, '(^|\.)xn--|[^\x00-\x7F]')
GROUP BY url_host_registered_domain, url_host_name
ORDER BY captures DESC, host
