"""What `amicrawl crawl` is to crawl: a site, a seed list, or what a crawl file says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import InputError, UsageError
from amicrawl.seed import LIST_ENDINGS, earlier_indexes

if TYPE_CHECKING:
    from collections.abc import Sequence

_WEB = ("http://", "https://")
_STANDARD_INPUT = "-"
_MOST = 1 << 20
"""Bytes of a crawl file without an ending: a larger file is a list."""


class Target(NamedTuple):
    """What a spider is to crawl."""

    spider: str
    arguments: dict[str, str]
    """Those of the spider that say so."""


def target_of(named: Sequence[str]) -> Target | Path:
    """Return what is *named*: a target, or the path of a crawl file.

    URLs begin with http:// or https://. A crawl file is called X.toml, or is a file of TOML without a
    suffix of seed lists. Every other file is a seed list, whose format is found by its reader, and so is
    the directory of a crawl by ami 0.2 or 0.3. Nothing is checked here but that the file exists.

    Raises UsageError for several arguments that are not all URLs, InputError for a missing file.
    """
    if all(_is_web(each) for each in named):
        return Target("site", {"url": " ".join(map(_urls, named))})
    if len(named) > 1:
        other = next(each for each in named if not _is_web(each))
        raise UsageError(
            f"{other!r} is not an HTTP URL. Give one crawl file, one seed list, or any number of URLs; "
            "quote a URL that has a space."
        )
    (name,) = named
    path = Path(name)
    if name == _STANDARD_INPUT:
        return Target("seeds", {"file": name})
    if path.suffix.lower() == ".toml":
        return path
    if "://" in name:
        raise UsageError(f"{name!r} is not an HTTP or HTTPS URL.")
    if path.is_dir():
        if earlier_indexes(path) and not (path / "captures.parquet").exists():
            return Target("seeds", {"file": name})
        raise UsageError(f"{path} is a directory. {_what_to_do_with(path)}")
    if not path.exists():
        raise InputError(f"The file {name!r} is missing. {_advice(name)}")
    return path if _holds_toml(path) else Target("seeds", {"file": name})


def _is_web(name: str) -> bool:
    return name[:8].lower().startswith(_WEB)


def _urls(name: str) -> str:
    """Return the URLs in *name*, with blanks between them as the spider takes them and none in them."""
    parts = name.split()
    return (" " if all(map(_is_web, parts)) else "%20").join(parts)


def _what_to_do_with(directory: Path) -> str:
    if (directory / "captures.parquet").exists():
        return f"To fetch the URLs of the crawl in it again: amicrawl recrawl {directory} --all"
    return "Give a URL, a seed list or a crawl file."


def _advice(name: str) -> str:
    """Return what may have been meant by the missing *name*."""
    scheme, slashes, rest = name.replace(":", "").partition("/")
    if slashes and scheme.lower() in {"http", "https"}:
        return f"Did you mean {scheme.lower()}://{rest.lstrip('/')}?"
    host = name.partition("/")[0].partition(":")[0]
    if "." in host.strip(".") and Path(name).suffix.lower() not in LIST_ENDINGS:
        return f"If it is a web site, write its URL: amicrawl crawl https://{name}"
    return "Check the path, or give a URL such as https://example.org/."


def _holds_toml(path: Path) -> bool:
    # A pipe could be read only once, and is the spider's.
    if path.suffix.lower() in LIST_ENDINGS or not path.is_file() or path.stat().st_size > _MOST:
        return False
    from amicrawl.crawlfile import parsed_toml  # noqa: PLC0415  # for files of no other kind

    try:
        return bool(parsed_toml(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return False
