-- How often was each reason of failure given?
-- The reason is the text before the first colon.
--
-- group: crawl
-- columns: host, error
-- dialect: ours

SELECT split_part(error, ':', 1) AS reason, count(*) AS fetches, count(DISTINCT host) AS hosts
FROM captures
WHERE error <> ''
GROUP BY 1
ORDER BY fetches DESC, reason
