-- How much does each segment hold?
--
-- group: collection
-- columns: crawl, warc_segment, warc_filename, warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- dialect: ours

SELECT crawl, warc_segment AS segment,
       count(*) AS captures,
       count(DISTINCT warc_filename) AS files,
       CAST(sum(warc_record_length) AS BIGINT) AS bytes
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
GROUP BY crawl, warc_segment
ORDER BY crawl, segment
