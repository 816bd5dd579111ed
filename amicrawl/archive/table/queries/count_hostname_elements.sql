-- Which words do the host names of a top-level domain consist of, and where do they stand?
-- Positions count from the right: 1 is the top-level domain.
--
-- group: published
-- columns: crawl, subset, url_host_tld, url_host_name
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter tld (text) = gov: the top-level domain
-- parameter at_least (whole) = 100: how often a word has to occur
-- dialect: the original reverses the list of labels; here the position is counted back, because
-- dialect: DuckDB reverses a list by list_reverse

SELECT p.label, count(*) AS frequency,
       histogram(CAST(cardinality(split(url_host_name, '.')) - p.position + 1 AS INTEGER)) AS positions
FROM ccindex
CROSS JOIN UNNEST(split(url_host_name, '.')) WITH ORDINALITY AS p (label, position)
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND url_host_tld = $tld
GROUP BY p.label
HAVING count(*) >= $at_least
ORDER BY frequency DESC, p.label
