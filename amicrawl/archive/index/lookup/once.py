"""A single look into indexes, as `amicrawl cdx query` takes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amicrawl.archive.index.lookup.query import count_pages, response_lines
from amicrawl.archive.index.lookup.request import request_of
from amicrawl.archive.index.lookup.source import open_sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


def looked_up(parameters: Mapping[str, Sequence[str]], paths: Sequence[Path]) -> Iterator[bytes]:
    """Return the lines in the indexes *paths* that *parameters* request, or how many pages they have.

    Raises UsageError for parameters that say nothing, InputError where there is no index.
    """
    request = request_of(parameters)
    sources = open_sources(paths)
    if not request.counts_pages:
        return response_lines(request, sources)
    found = count_pages(request, sources)
    said = {"pages": found.pages, "pageSize": found.page_size, "blocks": found.blocks}
    return iter([json.dumps(said).encode() + b"\n"])
