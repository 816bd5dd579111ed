-- Where are the records of a random sample of English pages?
-- One in a million, to be cut out of the WARC files; drawn as in random_sample_urls.
--
-- group: published
-- columns: crawl, subset, url, fetch_time, content_languages, warc_filename, warc_record_offset,
-- columns: warc_record_length
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subset (text) = warc: only this subset (rows without one count as warc); empty for all
-- parameter language (text) = eng: the only language of a page
-- parameter percent (number) = 0.0001: how many captures of a hundred
-- parameter seed (whole) = 1: another number gives another sample
-- dialect: the original says TABLESAMPLE BERNOULLI

SELECT url, warc_filename, warc_record_offset, warc_record_length
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subset = '' OR coalesce(subset, 'warc') = $subset)
  AND content_languages = $language
  AND (md5_number_lower(concat_ws('|', $seed, url, fetch_time, warc_filename, warc_record_offset))
       % 1000000000) < $percent * 10000000
ORDER BY warc_filename, warc_record_offset
