"""The output directory of a crawl: taken over, written to, and accounted for in `crawl.json`."""

from __future__ import annotations

import logging
import os
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from amicrawl.config import UNTOLD
from amicrawl.crawl.credentials import redaction_note
from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.record import Archive, CrawlJson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from amicrawl.config import CrawlConfig
    from amicrawl.record import SealedFile
    from amicrawl.record.repair import Repaired

logger = logging.getLogger(__name__)

_URLS_TOLD = 100
_VERSIONS_OF = ("scrapy", "twisted", "pycurl", "pyarrow", "isal")


def frontier_directory(config: CrawlConfig) -> Path:
    """Return where the frontier of a crawl by *config* is kept."""
    return config.directory / "frontier"


class Output:
    """The archive of one crawl and its `crawl.json`.

    Raises OutputError where the directory cannot be made, UsageError where another crawl has it, and
    DamagedFileError where what an earlier one left there is not ours.
    """

    def __init__(
        self,
        config: CrawlConfig,
        *,
        asked: Mapping[str, Any],
        on_sealed: Callable[[SealedFile], None] | None = None,
        disk: Disk | None = None,
    ) -> None:
        """*on_sealed* is told of every file that was finished and listed; on the writer thread."""
        directory = config.directory
        disk = disk or Disk()
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"Output directory {directory} cannot be made: {error.strerror}. "
                "Choose another one with -a out= or AMICRAWL_OUT."
            ) from error
        self._crawl_json: CrawlJson | None = None
        self._on_sealed = on_sealed
        self.sealed: list[SealedFile] = []
        """The files that this crawl has finished, oldest first; filled by the writer thread."""
        self.archive = Archive(
            directory,
            config=config,
            now=lambda: datetime.now(UTC),
            monotonic=time.monotonic,
            random=os.urandom,
            warcinfo=redaction_note(config),
            on_sealed=self._list,
            disk=disk,
        )
        _tell_of_repair(self.archive.repaired)
        self._crawl_json = CrawlJson(
            directory,
            started=datetime.now(UTC),
            asked=asked,
            settings=config.model_dump(mode="json", exclude=set(UNTOLD)),
            versions=_versions(),
            disk=disk,
        )

    def finish(
        self,
        reason: str,
        counts: Mapping[str, int],
        *,
        links: Mapping[str, int] | None = None,
        ignored: Mapping[str, int] | None = None,
    ) -> None:
        """Write down how the crawl ended; raises OutputError where even that fails."""
        if self._crawl_json is not None:
            now = datetime.now(UTC)
            self._crawl_json.finish(reason, finished=now, counts=counts, links=links, ignored=ignored)

    def _list(self, file: SealedFile) -> None:
        """List a sealed file at once: a killed crawl's files are accounted for, too; writer thread."""
        if self._crawl_json is not None:
            self._crawl_json.add_file(file)
            self.sealed.append(file)
            if self._on_sealed is not None:
                self._on_sealed(file)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS_OF}}


def _tell_of_repair(repaired: Repaired) -> None:
    if not repaired.found_anything:
        return
    logger.warning("The last crawl into this directory was killed. %s", repaired.sentence())
    for url in repaired.lost_urls[:_URLS_TOLD]:
        logger.warning("Its capture never arrived, fetch it again: %s", ascii(url))
