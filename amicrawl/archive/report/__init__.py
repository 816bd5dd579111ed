"""Summaries of collections: what an index of captures says about them, counted once and added up after.

`rows`, `line_batches` and `parquet` turn an input into batches of columns, `counting` turns a batch into
`Counts`, and `Counts` add up: a summary of parts is the summary of the whole. What is shown (text, JSON,
page) is derived from `Counts` alone. Nothing here reads a WARC file or the network.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.archive.report.counts import CDX_SUMMARY, CORRECTED, Counts, MixedRulesError
    from amicrawl.archive.report.counts_json import (
        counts_to_json,
        narrow_to_json,
        report_to_json,
        summary_to_json,
    )
    from amicrawl.archive.report.crawl_figures import figures_of
    from amicrawl.archive.report.crawl_page import crawl_sections, page_of_crawl
    from amicrawl.archive.report.document import TimedValue, chart_styles, series_chart
    from amicrawl.archive.report.figures import Overlap, overlap_of
    from amicrawl.archive.report.inputs import STDIN, files_of
    from amicrawl.archive.report.live_figures import LiveFigures, latest_pages
    from amicrawl.archive.report.page import page_of
    from amicrawl.archive.report.parquet import count_narrow
    from amicrawl.archive.report.reading import KINDS, ReadingProgress, count_on_spark, read_counts
    from amicrawl.archive.report.text import REPLAY, narrow_lines, overlap_lines, text_lines
    from amicrawl.archive.report.years import YearsRead, folded, read_years, shared_csv, shared_years
else:
    __getattr__, __all__ = lazy_exports(__spec__)
