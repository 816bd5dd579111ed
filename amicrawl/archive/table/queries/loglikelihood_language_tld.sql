-- How strongly are languages bound to top-level domains?
-- loglikelihood is the sum without weights that Common Crawl's question of this name computes;
-- dunning is the statistic proper, each term weighted by its count. Only pages with exactly one
-- language count; the two last columns are conditional probabilities.
--
-- group: published
-- columns: crawl, subset, content_languages, url_host_tld
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 100: fewest pages of a line
-- dialect: the original is a view and a query that filters it; margins are floating point, whole
-- dialect: numbers would overflow

WITH pairs AS (
  SELECT content_languages AS language, url_host_tld AS tld, count(*) AS pages
  FROM ccindex
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
    AND content_languages NOT LIKE '%,%'
    AND url_host_tld IS NOT NULL
  GROUP BY content_languages, url_host_tld
),
margins AS (
  SELECT language, tld, pages,
         CAST(pages AS DOUBLE) AS n,
         CAST(sum(pages) OVER (PARTITION BY language) AS DOUBLE) AS a,
         CAST(sum(pages) OVER (PARTITION BY tld) AS DOUBLE) AS b,
         CAST(sum(pages) OVER () AS DOUBLE) AS total
  FROM pairs
),
terms AS (
  SELECT *,
         ln(n * total / (a * b)) AS joint,
         if(a <> n, ln((a - n) * total / (a * (total - b))), 0.0) AS language_only,
         if(b <> n, ln((b - n) * total / (b * (total - a))), 0.0) AS tld_only,
         if(total + n <> a + b,
            ln((total - a - b + n) * total / ((total - a) * (total - b))), 0.0) AS neither
  FROM margins
)
SELECT language, tld, pages,
       2 * (joint + language_only + tld_only + neither) AS loglikelihood,
       2 * (n * joint + (a - n) * language_only + (b - n) * tld_only
            + (total - a - b + n) * neither) AS dunning,
       n / b AS language_given_tld,
       n / a AS tld_given_language
FROM terms
WHERE pages >= $at_least
ORDER BY loglikelihood DESC, language, tld
