-- Under which paths do captures of robots.txt end?
-- Redirects show as other paths than /robots.txt. In a table without that subset query with subset=
-- and get the captures of /robots.txt itself.
--
-- group: published
-- columns: crawl, subset, url_path
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = robotstxt: only this subset (rows without one count as warc); empty for all
-- parameter at_least (whole) = 100: fewest captures of a path
-- dialect: the original cuts the path out of url with URL_EXTRACT_PATH; here the column url_path
-- dialect: has it (a macro url_extract_path exists for your own questions)

SELECT url_path AS path, count(*) AS captures
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND ($subset <> '' OR url_path = '/robots.txt')
GROUP BY url_path
HAVING count(*) >= $at_least
ORDER BY captures DESC, path
