-- Where are the records of one host?
--
-- group: crawl
-- columns: url, host, status, fetched_at, warc_file, warc_offset, warc_length
-- parameter host (text) = example.com: the host, lower case
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT url, status, make_timestamp(fetched_at * 1000) AS fetched,
       warc_file, warc_offset, warc_length
FROM captures
WHERE host = $host
  AND warc_file <> ''
ORDER BY url, fetched_at, warc_file, warc_offset
LIMIT $limit
