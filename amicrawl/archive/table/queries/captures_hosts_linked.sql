-- Which hosts led to which other hosts?
-- By the page that each URL was first found on.
--
-- group: ways
-- columns: url, via, host
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH hosts AS (
  SELECT DISTINCT url, host
  FROM captures
)
SELECT source.host AS source_host, target.host AS host, count(DISTINCT target.url) AS urls
FROM captures AS target JOIN hosts AS source ON source.url = target.via
WHERE source.host <> target.host
GROUP BY source.host, target.host
ORDER BY urls DESC, source_host, host
LIMIT $limit
