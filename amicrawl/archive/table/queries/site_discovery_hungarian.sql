-- Which hosts have pages in Hungarian, and how many?
-- Any language can be chosen. Pages without a known one count apart. With the ten most frequent
-- languages.
--
-- group: published
-- columns: crawl, subset, url_host_registered_domain, url_host_name, content_languages
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter language (text) = hun: the first language of a page
-- parameter at_least (whole) = 1: fewest pages of a host in it
-- dialect: the original cuts and sorts maps with lambdas; here languages are ranked by
-- dialect: row_number

WITH counts AS (
  SELECT url_host_registered_domain AS domain,
         url_host_name AS host,
         nullif(regexp_extract(content_languages, '^([a-z]+)', 1), '') AS language,
         count(*) AS pages
  FROM ccindex
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  GROUP BY 1, 2, 3
),
ranked AS (
  SELECT *,
         row_number() OVER (
           PARTITION BY host, language IS NULL ORDER BY pages DESC, language
         ) AS place
  FROM counts
),
hosts AS (
  SELECT domain, host,
         CAST(sum(pages) AS BIGINT) AS pages,
         CAST(coalesce(sum(pages) FILTER (WHERE language = $language), 0) AS BIGINT) AS in_language,
         CAST(coalesce(sum(pages) FILTER (WHERE language <> $language), 0) AS BIGINT) AS other,
         CAST(coalesce(sum(pages) FILTER (WHERE language IS NULL), 0) AS BIGINT) AS unknown,
         map(
           coalesce(array_agg(language ORDER BY place)
                      FILTER (WHERE language IS NOT NULL AND place <= 10), []),
           coalesce(array_agg(pages ORDER BY place)
                      FILTER (WHERE language IS NOT NULL AND place <= 10), [])
         ) AS top_languages
  FROM ranked
  GROUP BY domain, host
)
SELECT domain, host, pages, in_language, other, unknown,
       round(100.0 * in_language / pages, 2) AS percent, top_languages
FROM hosts
WHERE in_language >= $at_least
ORDER BY in_language DESC, host
