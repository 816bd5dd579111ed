-- What did the seed list say of each URL, under one name?
--
-- group: crawl
-- columns: url, meta_json
-- parameter name (text) = source: the name of the field
-- dialect: ours

SELECT url, json_extract_string(meta_json, concat('/', replace(replace($name, '~', '~0'), '/', '~1'))) AS value
FROM captures
WHERE meta_json <> ''
ORDER BY url, value
