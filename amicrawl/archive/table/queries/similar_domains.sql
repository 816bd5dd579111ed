-- Which domains are called almost like a word?
--
-- group: published
-- columns: crawl, subset, url_host_tld, url_host_2nd_last_part, url_host_registered_domain,
-- columns: url_host_name
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter word (text) = example: the second-level label to compare with
-- parameter distance (whole) = 2: most letters that may differ
-- dialect: levenshtein_distance is a macro (levenshtein in DuckDB and Spark)

SELECT url_host_tld AS tld,
       url_host_2nd_last_part AS label,
       url_host_registered_domain AS domain,
       levenshtein_distance(url_host_2nd_last_part, $word) AS distance,
       count(*) AS pages,
       count(DISTINCT url_host_name) AS hosts
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND levenshtein_distance(url_host_2nd_last_part, $word) <= $distance
GROUP BY url_host_tld, url_host_2nd_last_part, url_host_registered_domain
ORDER BY distance, pages DESC, domain, label
