-- Which hosts contributed the most bytes?
--
-- group: crawl
-- columns: host, body_length, error
-- parameter limit (whole) = 25: most rows
-- dialect: ours

SELECT host, CAST(sum(body_length) AS BIGINT) AS bytes, count(*) AS pages
FROM captures
WHERE error = ''
GROUP BY host
ORDER BY bytes DESC, host
LIMIT $limit
