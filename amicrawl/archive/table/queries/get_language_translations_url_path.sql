-- Which domains keep translations under paths of two letters?
-- As in /de/imprint or /x/en/y.html. A page under two codes counts once for each.
--
-- group: published
-- columns: crawl, subset, url_host_registered_domain, url_path
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 100: fewest pages of a domain
-- dialect: the original looks around with a regular expression, (?<=/)[a-z][a-z](?=/), which
-- dialect: DuckDB does not know; here the path is split at its slashes

WITH codes AS (
  SELECT url_host_registered_domain AS domain, p.code
  FROM ccindex
  CROSS JOIN UNNEST(array_distinct(split(regexp_replace(url_path, '[^/]*$', ''), '/'))) AS p (code)
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
    AND regexp_like(p.code, '^[a-z][a-z]$')
)
SELECT domain,
       count(*) AS pages,
       count(DISTINCT code) AS languages,
       histogram(code) AS codes
FROM codes
GROUP BY domain
HAVING count(*) >= $at_least
ORDER BY languages DESC, pages DESC, domain
