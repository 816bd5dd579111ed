-- What did pages request in a browser?
--
-- group: pages
-- columns: host, page, resource_type, status, error, body_length
-- dialect: ours

SELECT resource_type,
       count(*) AS requests,
       count(DISTINCT page) AS pages,
       count(DISTINCT host) AS hosts,
       CAST(sum(body_length) AS BIGINT) AS bytes,
       count(*) FILTER (WHERE status >= 400 OR error <> '') AS failures
FROM captures
WHERE resource_type <> ''
GROUP BY resource_type
ORDER BY requests DESC, resource_type
