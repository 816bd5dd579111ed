"""Write the reference from the code: tables of settings, of keys of crawl files and of jobs; the schema.

    python .ci/reference.py [--check]

With `--check` nothing is written, and the files that differ are named; exit code 1 if there are any.
"""

from __future__ import annotations

import re
import sys
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawlfile.keys import (
    FILE_NAME,
    HOST_KEYS,
    KEYS,
    PATTERN,
    TABLES,
    Key,
    description_of,
    schema_text,
    setting_description,
)
from amicrawl.fleet.jobs.job_settings import SETTINGS as JOB_SETTINGS
from amicrawl.fleet.jobs.job_settings import FlagKind, JobSetting, LineKind, SettingField

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
SETTINGS, CRAWL_FILES = ROOT / "docs" / "settings.md", ROOT / "docs" / "crawl-files.md"
JOBS = ROOT / "docs" / "jobs.md"
SCHEMA = ROOT / "amicrawl" / "crawlfile" / FILE_NAME


def reference() -> dict[Path, str]:
    """Return the content that each file of the reference should have."""
    _check_sections(CRAWL_FILES)
    keys = [*KEYS.values(), PATTERN, *HOST_KEYS.values()]
    return {
        SETTINGS: _with_rows(SETTINGS, "Setting", [_setting_rows()]),
        CRAWL_FILES: _with_rows(CRAWL_FILES, "Key", _by_table(keys)),
        JOBS: _with_rows(JOBS, "Field", [job_rows(JOB_SETTINGS)]),
        SCHEMA: schema_text(),
    }


def _with_rows(page: Path, heading: str, tables: list[list[str]]) -> str:
    """Return *page* with new rows in its first tables whose first heading is *heading*, in order."""
    left = iter(tables)

    def replaced(head: re.Match[str]) -> str:
        return head[1] + "".join(f"{row}\n" for row in next(left))

    pattern = re.compile(rf"(^\| {heading} \|.*\n\|[-|]+\n)(?:\|.*\n)*", re.MULTILINE)
    return pattern.sub(replaced, page.read_text(), count=len(tables))


def _setting_rows() -> list[str]:
    rows = []
    for name, field in CrawlConfig.model_fields.items():
        default = repr(field.default) if field.default == "" else str(field.default)
        others = CrawlConfig.model_fields.keys() - _words_of(field.default)
        text = re.sub(r"`([a-z_]+)`", partial(_as_setting, others), setting_description(name))
        rows.append(f"| `{PREFIX}{name.upper()}` | `{default}` | {text} |")
    return rows


def _words_of(default: object) -> set[str]:
    """Return names of settings that mean a word of this setting's own value: `browser` of headers."""
    if isinstance(default, Enum):
        return {str(value) for value in type(default)}
    return set(HOST_KEYS) if isinstance(default, dict) else set()


def _as_setting(names: set[str], found: re.Match[str]) -> str:
    return f"`{PREFIX}{found[1].upper()}`" if found[1] in names else found[0]


def _check_sections(page: Path) -> None:
    """Exit where the sections of *page* are not the tables: each would show the keys of another."""
    sections = re.findall(r"^### `\[([a-z]+)", page.read_text(), re.MULTILINE)
    if sections != list(TABLES):
        sys.exit(f"{page.name} has sections for {sections}, and the tables are {list(TABLES)}.")


def _by_table(keys: list[Key]) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for key in keys:
        row = f"| `{key.name}` | {key.kind.wanted} | {description_of(key)} |"
        rows.setdefault(key.table, []).append(row)
    return list(rows.values())


def job_rows(settings: Sequence[JobSetting]) -> list[str]:
    """Return a row for each field of *settings*, the settings of jobs."""
    rows = []
    for setting in settings:
        option = f"`--{setting.verb}`" if setting.is_submitted else ""
        verb = f"`{setting.verb}`" if setting.is_live else ""
        for field in setting.fields:
            default = "" if field.default is None else str(field.default)
            cells = (f"`{field.name}`", field.meaning, _values(field), default, option, verb)
            rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return rows


def _values(field: SettingField) -> str:
    kind = field.kind
    if isinstance(kind, LineKind):
        return f"text, {kind.longest} characters"
    if isinstance(kind, FlagKind):
        return "`true`, or absent"
    return f"{kind.least} to {kind.most} {kind.unit}".strip()


def main() -> int:
    """Write or check the files; return the exit code."""
    differing = [path for path, text in reference().items() if path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in differing:
            print(f"{path.relative_to(ROOT)} differs from the code: run `make reference`.")
        return int(bool(differing))
    for path, text in reference().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
