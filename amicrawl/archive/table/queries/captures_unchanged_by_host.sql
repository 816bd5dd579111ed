-- Which hosts had not changed since the crawl before?
--
-- columns: host, unchanged, error
-- dialect: ours

SELECT host,
       count(*) AS captures,
       count(*) FILTER (WHERE unchanged) AS unchanged,
       round(100.0 * count(*) FILTER (WHERE unchanged) / count(*), 2) AS percent
FROM captures
WHERE error = ''
GROUP BY host
ORDER BY unchanged DESC, host
