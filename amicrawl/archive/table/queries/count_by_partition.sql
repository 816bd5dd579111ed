-- How many captures does each crawl and subset hold?
--
-- group: published
-- columns: crawl, subset
-- dialect: as in the original; read from the footers alone

SELECT crawl, subset, count(*) AS captures
FROM ccindex
GROUP BY crawl, subset
ORDER BY crawl, subset
