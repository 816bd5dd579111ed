-- Functions under the names that Athena, Trino and Spark give them, so that questions written for those run
-- on DuckDB as they are. One statement each; a name that DuckDB has itself is not here.
--
-- What a macro cannot mend: TABLESAMPLE BERNOULLI (5) is TABLESAMPLE bernoulli(5%); regular expressions
-- do not look around; transform(list, w -> ...) is list_transform; map_filter takes an entry,
-- map_filter(m, lambda e: e.value > 1); reverse of a list is list_reverse inside of CROSS JOIN UNNEST;
-- minutes and seconds of a date are %M and %S where Trino writes %i and %s.

-- Trino and Athena
CREATE MACRO regexp_like(text, pattern) AS regexp_matches(text, pattern);
CREATE MACRO regexp_split(text, pattern) AS regexp_split_to_array(text, pattern);
CREATE MACRO levenshtein_distance(one, other) AS levenshtein(one, other);
CREATE MACRO slice(list, start, length) AS list_slice(list, start, start + length - 1);
CREATE MACRO reverse(text VARCHAR) AS system.main.reverse(text), (list VARCHAR[]) AS list_reverse(list);
CREATE MACRO array_join(list, separator) AS array_to_string(list, separator);
CREATE MACRO approx_distinct(value) AS approx_count_distinct(value);
CREATE MACRO map_agg(key, value) AS map(list(key), list(value));
CREATE MACRO map_filter(entries, keep) AS map_from_entries(list_filter(map_entries(entries), keep));
CREATE MACRO date_parse(text, format) AS strptime(text, format);
CREATE MACRO date_format(moment, format) AS strftime(moment, format);
CREATE MACRO from_unixtime(seconds) AS to_timestamp(seconds);
CREATE MACRO url_extract_protocol(url) AS nullif(regexp_extract(url, '^([A-Za-z][A-Za-z0-9+.-]*):', 1), '');
CREATE MACRO url_extract_host(url) AS
  nullif(regexp_extract(url, '^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)', 1), '');
CREATE MACRO url_extract_path(url) AS
  regexp_extract(url, '^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?#]*)?([^?#]*)', 1);
CREATE MACRO url_extract_query(url) AS nullif(regexp_extract(url, '^[^?#]*\?([^#]*)', 1), '');

-- Spark
CREATE MACRO rlike(text, pattern) AS regexp_matches(text, pattern);
CREATE MACRO timestamp_millis(milliseconds) AS make_timestamp(milliseconds * 1000);
CREATE MACRO size(list) AS len(list);
CREATE MACRO collect_list(value) AS list(value);
CREATE MACRO collect_set(value) AS list_distinct(list(value));
CREATE MACRO get_json_object(text, path) AS CASE WHEN json_valid(text) THEN json_extract_string(text, path) END;
CREATE MACRO parse_url(url, part) AS CASE part
  WHEN 'PROTOCOL' THEN nullif(regexp_extract(url, '^([A-Za-z][A-Za-z0-9+.-]*):', 1), '')
  WHEN 'HOST' THEN
    nullif(regexp_extract(url, '^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)', 1), '')
  WHEN 'PATH' THEN regexp_extract(url, '^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?#]*)?([^?#]*)', 1)
  WHEN 'QUERY' THEN nullif(regexp_extract(url, '^[^?#]*\?([^#]*)', 1), '')
  END;
