-- What did documents of each type lead to?
-- The media type of the document that a URL was first found in, how it was found, and the media type that it
-- has itself: the enclosures of a feed are requisites of application/rss+xml. Each URL once, by its newest fetch.
--
-- group: ways
-- columns: url, via, link, content_type, body_length, error, fetched_at
-- dialect: ours

WITH fetches AS (
  SELECT url, via, link, body_length, lower(trim(split_part(content_type, ';', 1))) AS media_type,
         row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) AS newest
  FROM captures
  WHERE error = ''
)
SELECT source.media_type AS source_type,
       target.link AS link,
       target.media_type AS media_type,
       count(*) AS urls,
       CAST(sum(target.body_length) AS BIGINT) AS bytes
FROM fetches AS target JOIN fetches AS source ON source.url = target.via
WHERE target.newest = 1
  AND source.newest = 1
GROUP BY source.media_type, target.link, target.media_type
ORDER BY urls DESC, source_type, link, media_type
