-- Which bodies came from more than one URL?
--
-- group: crawl
-- columns: url, digest, body_length, error
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT digest, count(DISTINCT url) AS urls, max(body_length) AS bytes, min(url) AS example
FROM captures
WHERE error = ''
  AND digest <> ''
  AND body_length > 0
GROUP BY digest
HAVING count(DISTINCT url) > 1
ORDER BY urls DESC, digest
LIMIT $limit
