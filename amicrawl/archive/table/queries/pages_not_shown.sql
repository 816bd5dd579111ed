-- Which pages did a browser not show as a whole, and why?
-- The newest fetch of each page counts. What a page lacks is in pages_not_whole.
--
-- group: pages
-- columns: url, status, error, fetched_at, meta_json, warc_file, warc_offset, warc_length
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

WITH fetches AS (
  SELECT url, status, warc_file, warc_offset, warc_length,
         get_json_object(meta_json, concat(chr(36), '.page_fault')) AS fault,
         row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE error NOT LIKE 'repeated-seed%'
)
SELECT url, fault, status, warc_file, warc_offset, warc_length
FROM fetches
WHERE newest = 1
  AND fault <> ''
ORDER BY fault, url
LIMIT $limit
