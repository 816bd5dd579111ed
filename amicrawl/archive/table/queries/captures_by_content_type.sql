-- How much came of each content type?
-- Parameters such as charset are cut off.
--
-- group: crawl
-- columns: content_type, body_length, error
-- dialect: ours

SELECT lower(trim(split_part(content_type, ';', 1))) AS type,
       count(*) AS captures,
       CAST(sum(body_length) AS BIGINT) AS bytes
FROM captures
WHERE error = ''
GROUP BY 1
ORDER BY captures DESC, type
