"""Summaries of collections: what an index of captures says about them, counted once and added up after.

`rows`, `line_batches` and `parquet` turn an input into batches of columns, `counting` turns a batch into
`Counts`, and `Counts` add up: a summary of parts is the summary of the whole. What is shown (text, JSON,
page) is derived from `Counts` alone. Nothing here reads a WARC file or the network.
"""
