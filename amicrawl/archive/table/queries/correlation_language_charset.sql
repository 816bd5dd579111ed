-- How strongly are languages bound to charsets?
-- loglikelihood is the sum without weights that Common Crawl's question of this name computes;
-- dunning is the statistic proper, each term weighted by its count. Only pages with exactly one
-- language count; the two last columns are conditional probabilities.
--
-- group: published
-- columns: crawl, subset, content_languages, content_charset
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 100: fewest pages of a line
-- dialect: margins are floating point, whole numbers would overflow

WITH pairs AS (
  SELECT content_languages AS language, content_charset AS charset, count(*) AS pages
  FROM ccindex
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
    AND content_languages NOT LIKE '%,%'
    AND content_charset IS NOT NULL
  GROUP BY content_languages, content_charset
),
margins AS (
  SELECT language, charset, pages,
         CAST(pages AS DOUBLE) AS n,
         CAST(sum(pages) OVER (PARTITION BY language) AS DOUBLE) AS a,
         CAST(sum(pages) OVER (PARTITION BY charset) AS DOUBLE) AS b,
         CAST(sum(pages) OVER () AS DOUBLE) AS total
  FROM pairs
),
terms AS (
  SELECT *,
         ln(n * total / (a * b)) AS joint,
         if(a <> n, ln((a - n) * total / (a * (total - b))), 0.0) AS language_only,
         if(b <> n, ln((b - n) * total / (b * (total - a))), 0.0) AS charset_only,
         if(total + n <> a + b,
            ln((total - a - b + n) * total / ((total - a) * (total - b))), 0.0) AS neither
  FROM margins
)
SELECT language, charset, pages,
       2 * (joint + language_only + charset_only + neither) AS loglikelihood,
       2 * (n * joint + (a - n) * language_only + (b - n) * charset_only
            + (total - a - b + n) * neither) AS dunning,
       n / b AS language_given_charset,
       n / a AS charset_given_language
FROM terms
WHERE pages >= $at_least
ORDER BY loglikelihood DESC, language, charset
