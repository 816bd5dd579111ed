-- From which hosts did scripts of pages request data?
--
-- group: pages
-- columns: url, host, page, resource_type, status, error
-- parameter limit (whole) = 1000: most rows
-- dialect: ours

SELECT page AS page_url,
       host,
       count(*) AS requests,
       count(*) FILTER (WHERE status >= 400 OR error <> '') AS failures,
       min(url) AS example
FROM captures
WHERE resource_type IN ('xhr', 'fetch', 'eventsource', 'websocket')
GROUP BY page, host
ORDER BY page_url, host
LIMIT $limit
