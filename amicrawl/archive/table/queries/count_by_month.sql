-- How many captures does each month have?
--
-- group: collection
-- columns: crawl, subset, fetch_time, warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- dialect: ours

SELECT CAST(date_trunc('month', fetch_time) AS DATE) AS month,
       count(*) AS captures,
       CAST(sum(warc_record_length) AS BIGINT) AS bytes
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
GROUP BY 1
ORDER BY month
