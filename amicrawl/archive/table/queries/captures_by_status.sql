-- How many fetches ended with each status?
-- 0 stands for a fetch that failed before a response.
--
-- group: crawl
-- columns: status
-- dialect: ours

SELECT status, count(*) AS n
FROM captures
GROUP BY status
ORDER BY n DESC, status
