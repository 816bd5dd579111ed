"""Seeds: URLs to fetch, with what their producer knows of them."""

from amicrawl.seed.seed import Seed

__all__ = ["Seed"]
