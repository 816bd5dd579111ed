-- Which domains were captured most often?
--
-- group: collection
-- columns: crawl, subset, url_host_registered_domain, url_surtkey, warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- parameter limit (whole) = 100: most rows
-- dialect: ours

SELECT url_host_registered_domain AS domain,
       count(*) AS captures,
       count(DISTINCT url_surtkey) AS urls,
       CAST(sum(warc_record_length) AS BIGINT) AS bytes
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY url_host_registered_domain
ORDER BY captures DESC, domain
LIMIT $limit
