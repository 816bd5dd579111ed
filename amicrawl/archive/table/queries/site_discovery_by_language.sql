-- Which hosts have a good share of pages in given languages?
-- With the 20 most frequent combinations of languages of each host.
--
-- group: published
-- columns: crawl, subset, url_host_registered_domain, url_host_name, content_languages
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter languages (text) = bre,cym,gla,gle: codes separated by commas; the first language of a page counts
-- parameter at_least (whole) = 5: fewest pages of a host in the language
-- parameter percent (number) = 5: least share of the host's pages, in percent
-- dialect: the original casts the map to JSON; as a map it comes out as an object of JSON anyway

WITH combinations AS (
  SELECT url_host_registered_domain AS domain,
         url_host_name AS host,
         content_languages AS languages,
         nullif(regexp_extract(content_languages, '^([a-z]+)', 1), '') AS language,
         count(*) AS pages
  FROM ccindex
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
    AND content_languages IS NOT NULL
  GROUP BY url_host_registered_domain, url_host_name, content_languages
),
ranked AS (
  SELECT *,
         sum(pages) OVER (PARTITION BY host) AS of_host,
         row_number() OVER (PARTITION BY host ORDER BY pages DESC, languages) AS place
  FROM combinations
),
hosts AS (
  SELECT host,
         map(array_agg(languages ORDER BY place), array_agg(pages ORDER BY place)) AS top_languages
  FROM ranked
  WHERE place <= 20
  GROUP BY host
),
shares AS (
  SELECT language, domain, host,
         CAST(sum(pages) AS BIGINT) AS pages,
         CAST(max(of_host) AS BIGINT) AS pages_of_host
  FROM ranked
  WHERE contains(split($languages, ','), language)
  GROUP BY language, domain, host
)
SELECT shares.language, shares.pages,
       round(100.0 * shares.pages / shares.pages_of_host, 2) AS percent,
       shares.domain, shares.host, hosts.top_languages
FROM shares
JOIN hosts ON shares.host = hosts.host
WHERE shares.pages >= $at_least
  AND 100.0 * shares.pages / shares.pages_of_host >= $percent
ORDER BY shares.language, shares.pages DESC, shares.host
