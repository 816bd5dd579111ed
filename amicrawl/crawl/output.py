"""The output directory of a crawl: taken over, written to, and accounted for in `crawl.json`."""

from __future__ import annotations

import logging
import os
import platform
import socket
import time
from datetime import UTC, datetime
from importlib.metadata import version
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from amicrawl.config import SECRET_FIELDS
from amicrawl.crawl.credentials import redaction_note
from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.listing import CrawlJson, expanded
from amicrawl.record import Archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.recorder import Recorder
    from amicrawl.listing import SealedFile
    from amicrawl.record import Repaired

logger = logging.getLogger(__name__)

_URLS_TOLD = 100
_VERSIONS_OF = ("scrapy", "twisted", "pyopenssl", "pyarrow", "isal")
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


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
        user_agent: str = "",
        part_of: str = "",
        on_sealed: Iterable[Callable[[SealedFile], None]] = (),
        disk: Disk | None = None,
    ) -> None:
        """*user_agent* is sent to servers, *part_of* is what the crawl is called; both may be empty.

        *on_sealed* are called with every file that was finished and listed; on the writer thread.
        """
        directory, started, host = config.directory, datetime.now(UTC), socket.gethostname()
        disk = disk or Disk()
        run = config.run_id or directory.absolute().name
        prefix = expanded(config.warc_prefix, run=run, started=started, host=host)
        _make_directory(directory)
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
            prefix=prefix,
            warcinfo=_about(host, user_agent, part_of) | redaction_note(config),
            on_sealed=self._list,
            disk=disk,
        )
        _log_repair(self.archive.repaired)
        if names_nobody(config, user_agent):
            logger.warning(
                "Requests do not name who crawls: set AMICRAWL_OPERATOR (--operator) to your URL or "
                "e-mail address."
            )
        self._crawl_json = CrawlJson(
            directory,
            started=started,
            asked=asked,
            settings=config.model_dump(mode="json", exclude=set(SECRET_FIELDS)),
            versions=_versions(),
            disk=disk,
            warc_prefix=prefix,
        )

    def finish(
        self,
        reason: str,
        counts: Mapping[str, int],
        *,
        unfinished: bool,
        links: Mapping[str, int] | None = None,
        ignored: Mapping[str, int] | None = None,
        unkept: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down how the crawl ended; raises OutputError where even that fails.

        *unfinished* tells whether URLs that are due, or lines of the seed list, were left.
        """
        if self._crawl_json is not None:
            now = datetime.now(UTC)
            self._crawl_json.finish(
                reason,
                finished=now,
                counts=counts,
                unfinished=unfinished,
                links=links,
                ignored=ignored,
                unkept=unkept,
            )

    def _list(self, file: SealedFile) -> None:
        """List a sealed file at once: a killed crawl's files are accounted for, too; writer thread."""
        if self._crawl_json is not None:
            self._crawl_json.add_file(file)
            self.sealed.append(file)
            for act in self._on_sealed:
                act(file)


def names_nobody(config: CrawlConfig, user_agent: str) -> bool:
    """Tell whether a crawl by *config* may reach strangers, and does not say whose it is.

    A crawl that may reach this machine itself is a trial. A *user_agent* of the project's own may say
    so, too.
    """
    is_trial = any(
        network.version == own.version and network.overlaps(own)
        for network in config.allow_private
        for own in _LOOPBACK
    )
    return not (config.operator or is_trial or "@" in user_agent or "://" in user_agent)


def _make_directory(directory: Path) -> None:
    try:
        str(directory).encode()
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, UnicodeEncodeError) as error:
        # pyarrow opens no file by such a name.
        reason = error.strerror if isinstance(error, OSError) else "its name is not UTF-8"
        raise OutputError(
            f"Output directory {directory} cannot be created: {reason}. "
            "Choose another one: -o, -a out= or AMICRAWL_OUT."
        ) from error


def _about(host: str, user_agent: str, part_of: str) -> dict[str, str]:
    """Return what a warcinfo record says of who made it and for what, by the names of ISO 28500."""
    said = {"hostname": host, "http-header-user-agent": user_agent, "isPartOf": part_of}
    return {name: value for name, value in said.items() if value}


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS_OF}}


def _log_repair(repaired: Repaired) -> None:
    if not repaired.found_anything:
        return
    logger.warning("The last crawl into this directory was killed. %s", repaired.sentence())
    for url in repaired.lost_urls[:_URLS_TOLD]:
        logger.warning("Its capture never arrived, fetch it again: %s", ascii(url))


class HeldArchive:
    """The archive in one directory, with the crawls of this process that write into it.

    A script that starts two spiders of a project gives both the same directory: the first opens its
    archive, the others join it, and the last one seals it. Another process finds the directory taken.
    """

    def __init__(self, directory: Path, output: Output, recorder: Recorder) -> None:
        self.output = output
        self.recorder = recorder
        self._directory = directory
        self._writing: set[int] = set()
        self._unfinished: set[int] = set()
        self._counts: dict[str, int] = {}

    @classmethod
    def join(
        cls, directory: Path, crawl: object, *, recorder: Recorder, opened: Callable[[], Output]
    ) -> HeldArchive:
        """Return the archive in *directory* for one more *crawl*; the first one has it *opened*."""
        held = _HELD.get(directory.absolute())
        if held is None:
            held = _HELD[directory.absolute()] = cls(directory.absolute(), opened(), recorder)
        held._writing.add(id(crawl))
        held._unfinished.add(id(crawl))
        return held

    def leave(self, crawl: object) -> bool:
        """Note that *crawl* writes nothing more; return whether none does, so that it may be sealed."""
        self._writing.discard(id(crawl))
        if not self._writing and _HELD.get(self._directory) is self:
            del _HELD[self._directory]
        return not self._writing

    def finish(self, crawl: object, reason: str, counts: dict[str, int]) -> None:
        """Add up the *counts* of *crawl*; write down how it ended if it was the last."""
        self.leave(crawl)
        self._unfinished.discard(id(crawl))
        for name, count in counts.items():
            self._counts[name] = self._counts.get(name, 0) + count
        if not self._unfinished:
            # What waits in Scrapy's queues is not counted: one that was not stopped leaves nothing.
            self.output.finish(reason, self._counts, unfinished=reason != "finished")


_HELD: dict[Path, HeldArchive] = {}
