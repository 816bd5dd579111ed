-- Where are the records of pages in one language?
--
-- group: published
-- columns: crawl, subset, url, url_surtkey, fetch_time, content_languages, warc_filename,
-- columns: warc_record_offset, warc_record_length
-- parameter crawls (text) = : only these crawls, separated by commas; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter language (text) = isl: code of three letters
-- parameter match (only|primary|any) = only: whether it has to be the only language, the first, or one of them
-- dialect: the original names two crawls, and has the variants as comments

SELECT url, content_languages, warc_filename, warc_record_offset, warc_record_length
FROM ccindex
WHERE ($crawls = '' OR contains(split($crawls, ','), crawl))
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND (content_languages = $language
       OR ($match = 'primary' AND content_languages LIKE concat($language, '%'))
       OR ($match = 'any' AND content_languages LIKE concat('%', $language, '%')))
ORDER BY url_surtkey, fetch_time, warc_filename, warc_record_offset
