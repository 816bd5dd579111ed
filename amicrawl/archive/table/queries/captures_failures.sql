-- What failed, and why?
--
-- columns: url, error
-- dialect: ours

SELECT url, error
FROM captures
WHERE error <> ''
ORDER BY url, error
