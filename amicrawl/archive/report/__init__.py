"""Summaries of collections: what an index of captures says about them, counted once and added up after.

`rows`, `line_batches` and `parquet` turn an input into batches of columns, `counting` turns a batch into
`Counts`, and `Counts` add up: a summary of parts is the summary of the whole. What is shown (text, JSON,
page) is derived from `Counts` alone. Nothing here reads a WARC file or the network.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.archive.report.counts import CDX_SUMMARY, CORRECTED, Counts
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
    __getattr__ = lazy_exports(
        __name__,
        LiveFigures="live_figures",
        latest_pages="live_figures",
        TimedValue="document",
        chart_styles="document",
        series_chart="document",
        crawl_sections="crawl_page",
        figures_of="crawl_figures",
        page_of_crawl="crawl_page",
        CDX_SUMMARY="counts",
        CORRECTED="counts",
        Counts="counts",
        KINDS="reading",
        Overlap="figures",
        REPLAY="text",
        ReadingProgress="reading",
        STDIN="inputs",
        YearsRead="years",
        count_narrow="parquet",
        count_on_spark="reading",
        counts_to_json="counts_json",
        files_of="inputs",
        folded="years",
        narrow_lines="text",
        narrow_to_json="counts_json",
        overlap_lines="text",
        overlap_of="figures",
        page_of="page",
        read_counts="reading",
        read_years="years",
        report_to_json="counts_json",
        shared_csv="years",
        shared_years="years",
        summary_to_json="counts_json",
        text_lines="text",
    )

__all__ = [
    "CDX_SUMMARY",
    "CORRECTED",
    "KINDS",
    "REPLAY",
    "STDIN",
    "Counts",
    "LiveFigures",
    "Overlap",
    "ReadingProgress",
    "TimedValue",
    "YearsRead",
    "chart_styles",
    "count_narrow",
    "count_on_spark",
    "counts_to_json",
    "crawl_sections",
    "figures_of",
    "files_of",
    "folded",
    "latest_pages",
    "narrow_lines",
    "narrow_to_json",
    "overlap_lines",
    "overlap_of",
    "page_of",
    "page_of_crawl",
    "read_counts",
    "read_years",
    "report_to_json",
    "series_chart",
    "shared_csv",
    "shared_years",
    "summary_to_json",
    "text_lines",
]
