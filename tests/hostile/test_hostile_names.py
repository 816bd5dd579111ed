"""Names that come from elsewhere and become those of directories: no path leads out of the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amicrawl.config import CrawlConfig
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "..",
    "../x",
    "/etc",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\n",
    "a ",
    " ",
    "-rf",
    ".hidden",
    "C:x",
    "gpj\u202e.exe",
    "é",
    "a" * 101,
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_run_is_not_called_what_could_lead_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_RUN_ID"):
        CrawlConfig.from_settings({"AMICRAWL_OUT": str(tmp_path), "AMICRAWL_RUN_ID": name})


@pytest.mark.parametrize("name", [*NAMES, "{user}", "{run", "{run!r}"], ids=ascii)
def test_a_prefix_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="AMICRAWL_WARC_PREFIX"):
        CrawlConfig.from_settings({"AMICRAWL_WARC_PREFIX": name})


def test_a_run_stays_below_the_output_directory(tmp_path: Path) -> None:
    config = CrawlConfig.from_settings({"AMICRAWL_OUT": str(tmp_path), "AMICRAWL_RUN_ID": "a..b"})
    assert config.directory == tmp_path / "a..b"
