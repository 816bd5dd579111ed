-- How many fetches does the index hold?
-- One row stands for one fetch; of several runs, the indexes add up.
--
-- group: crawl
-- columns: error, unchanged, body_length
-- dialect: ours

SELECT count(*) AS fetches,
       count(*) FILTER (WHERE error = '') AS answered,
       count(*) FILTER (WHERE error <> '') AS failed,
       count(*) FILTER (WHERE unchanged) AS unchanged,
       CAST(coalesce(sum(body_length), 0) AS BIGINT) AS bytes
FROM captures
