-- How did the crawl go, minute by minute?
-- UTC.
--
-- group: crawl
-- columns: fetched_at, body_length, error
-- dialect: ours

SELECT date_trunc('minute', make_timestamp(fetched_at * 1000)) AS minute,
       count(*) AS fetches,
       count(*) FILTER (WHERE error <> '') AS failed,
       CAST(sum(body_length) AS BIGINT) AS bytes
FROM captures
GROUP BY 1
ORDER BY minute
