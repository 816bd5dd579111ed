-- What did the seed list say of the URLs, under one name?
--
-- group: crawl
-- columns: status, meta_json
-- parameter name (text) = source: the name of the field
-- dialect: ours

SELECT json_extract_string(meta_json, concat('/', replace(replace($name, '~', '~0'), '/', '~1'))) AS value,
       count(*) AS fetches,
       count(*) FILTER (WHERE status BETWEEN 200 AND 299) AS succeeded
FROM captures
WHERE meta_json <> ''
GROUP BY 1
ORDER BY fetches DESC, value
