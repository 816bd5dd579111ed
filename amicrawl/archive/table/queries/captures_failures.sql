-- What failed, and why?
-- What has been captured since is left out.
--
-- group: crawl
-- columns: url, error, fetched_at
-- dialect: ours

SELECT url, error
FROM captures AS failed
WHERE error <> ''
  AND error NOT LIKE 'repeated-seed%'
  AND NOT EXISTS (
    SELECT 1
    FROM captures AS later
    WHERE later.url = failed.url
      AND later.error = ''
      AND later.fetched_at >= failed.fetched_at
  )
ORDER BY url, error
