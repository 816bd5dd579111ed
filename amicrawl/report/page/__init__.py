"""The page of a summary: one HTML file that asks for nothing else, charts with tables behind them."""

from amicrawl.report.page.page import page_of

__all__ = ["page_of"]
