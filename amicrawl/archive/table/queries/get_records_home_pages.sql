-- Where are the records of the home pages of listed sites?
-- The path is /, empty, /index.htm, /index.html or /index.php, without a query; the host is the
-- site or www. before it. Sites without a home page are lines without a record.
--
-- group: published
-- columns: crawl, subset, url, url_host_name, url_host_registered_domain, url_path, url_query,
-- columns: fetch_time, warc_filename, warc_record_offset, warc_record_length
-- optional: fetch_redirect
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter sites (ranking) = : CSV file of rank,site; without it, the most captured domains of the table
-- dialect: regexp_like is a macro; the ranking is a table of that name, filled from the CSV file

WITH home_pages AS (
  SELECT *
  FROM ccindex
  WHERE ($crawl = '' OR crawl = $crawl)
    AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
    AND url_query IS NULL
    AND regexp_like(url_path, '^/?(index\.(html?|php))?$')
)
SELECT ranking.site, ranking.rank, home_pages.url, home_pages.fetch_time,
       home_pages.warc_filename, home_pages.warc_record_offset, home_pages.warc_record_length,
       home_pages.fetch_redirect
FROM home_pages
RIGHT OUTER JOIN ranking
  ON home_pages.url_host_registered_domain = ranking.site
 AND (home_pages.url_host_name = ranking.site
      OR home_pages.url_host_name = concat('www.', ranking.site))
ORDER BY ranking.rank, ranking.site, home_pages.url, home_pages.fetch_time, home_pages.warc_record_offset
