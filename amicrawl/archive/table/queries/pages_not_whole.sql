-- Which pages lack something that they need to be shown, and why?
-- Of each requisite the newest fetch counts. What was not requested (kept out by a pattern) has no row;
-- crawl.json counts it under unkept. A requisite is listed with the page that it was first found on.
--
-- group: pages
-- columns: url, via, link, status, error, fetched_at
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH RECURSIVE fetches AS (
  SELECT url, via, link, status, error,
         row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE error NOT LIKE 'repeated-seed%'
),
lacking AS (
  SELECT url AS requisite, via AS page_url, 1 AS steps,
         CASE WHEN error <> '' THEN split_part(error, ':', 1) ELSE concat('status ', status) END AS rule
  FROM fetches
  WHERE newest = 1
    AND link = 'requisite'
    AND (error <> '' OR status >= 400)
  UNION ALL
  SELECT lacking.requisite, parent.via, lacking.steps + 1, lacking.rule
  FROM lacking JOIN fetches AS parent ON parent.url = lacking.page_url
  WHERE parent.newest = 1
    AND parent.link = 'requisite'
    AND lacking.steps < 20
),
nearest AS (
  SELECT requisite, rule, max_by(page_url, steps) AS page_url
  FROM lacking
  GROUP BY requisite, rule
)
SELECT page_url, rule, count(*) AS requisites, min(requisite) AS example
FROM nearest
GROUP BY page_url, rule
ORDER BY page_url, rule
LIMIT $limit
