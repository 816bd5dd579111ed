-- What does a random sample of the URLs look like?
-- Each capture is drawn or not by a digest of its place and the seed: the same table gives the
-- same sample, however it is cut into files.
--
-- group: published
-- columns: crawl, subset, url, fetch_time, warc_filename, warc_record_offset
-- parameter crawl (text) = : only this crawl; empty for all
-- parameter subsets (text) = warc,crawldiagnostics: only these subsets, separated by commas; empty for all
-- parameter percent (number) = 0.5: how many captures of a hundred
-- parameter seed (whole) = 1: another number gives another sample
-- dialect: the original says TABLESAMPLE BERNOULLI (0.5), which gives another sample each time;
-- dialect: DuckDB writes TABLESAMPLE bernoulli(0.5%)

SELECT url
FROM ccindex
WHERE ($crawl = '' OR crawl = $crawl)
  AND ($subsets = '' OR contains(split($subsets, ','), coalesce(subset, 'warc')))
  AND (md5_number_lower(concat_ws('|', $seed, url, fetch_time, warc_filename, warc_record_offset))
       % 1000000000) < $percent * 10000000
ORDER BY url
