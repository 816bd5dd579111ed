-- How do two crawls differ?
-- A URL is there if its newest capture in a crawl has a status from 200 to 299 or 304, or is a revisit
-- without one. URLs are compared by their keys.
--
-- group: crawls
-- columns: crawl, subset, url, url_surtkey, fetch_time, fetch_status, content_digest, content_mime_type
-- columns: warc_filename, warc_record_offset
-- parameter before (text) = : the earlier crawl; empty for the newest one but `after`
-- parameter after (text) = : the later crawl; empty for the newest one
-- parameter subset (text) = : only this subset (rows without one count as warc); empty for all
-- dialect: ours

-- include _two_crawls
SELECT CASE WHEN NOT coalesce(before.is_there, false) THEN 'new'
            WHEN NOT coalesce(after.is_there, false) THEN 'gone'
            WHEN before.content_digest <> after.content_digest THEN 'changed'
            ELSE 'unchanged' END AS difference,
       count(*) AS urls
FROM before FULL JOIN after ON after.url_surtkey = before.url_surtkey
WHERE coalesce(before.is_there, false) OR coalesce(after.is_there, false)
GROUP BY 1
ORDER BY urls DESC, difference
