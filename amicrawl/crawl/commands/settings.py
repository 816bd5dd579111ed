"""`scrapy settings`: Scrapy's own, which knows the defaults of amicrawl's settings as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import settings
from scrapy.exceptions import UsageError as ScrapyUsageError

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    import argparse

_ASKS = ("get", "getbool", "getint", "getfloat", "getlist")


class Command(settings.Command):
    """Prints the value of a setting."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the setting that *opts* ask for; one of ours as a crawl would understand it."""
        assert self.settings is not None
        names = [name for ask in _ASKS if (name := getattr(opts, ask)) and name.startswith(PREFIX)]
        try:
            # An unknown name is refused as it would be where it is set.
            CrawlConfig.from_settings({name: None for name in names if name not in _known()})
            config = CrawlConfig.from_settings(dict(self.settings)) if names else None
        except UsageError as error:
            raise ScrapyUsageError(str(error), print_help=False) from error
        if config is not None:
            for name, value in config.model_dump(mode="json").items():
                self.settings.set(PREFIX + name.upper(), value, "cmdline")
        super().run(args, opts)


def _known() -> set[str]:
    return {PREFIX + name.upper() for name in CrawlConfig.model_fields}
