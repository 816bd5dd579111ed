"""What the parent says to a child: which process it is, and where it works."""

from __future__ import annotations

import os

from pydantic import BaseModel, ValidationError

from amicrawl.errors import AmicrawlError

SPECIFICATION = "AMICRAWL_PROCESS"
"""The environment variable in which the parent says which process this is."""
FOLDER = "processes"
"""The directory of the children, in that of the crawl."""
LARGEST_MESSAGE = 16 << 20
"""Bytes of one message between parent and child."""


class Specification(BaseModel, frozen=True, extra="forbid"):
    """Which process of a crawl this is."""

    number: int
    processes: int
    out: str
    """The directory of this process."""
    prefix: str
    """What names of its WARC files begin with."""
    socket: int
    """The descriptor of the socket to the parent."""
    file: str = ""
    """The seed list, where it is another than the arguments say."""
    deals: bool = False
    """Whether process 0 reads the seed list, and gives the others their part of it."""
    settles: bool = False
    """Whether nothing is fetched: what a killed crawl left is repaired and sealed."""
    pipe: int = -1
    """The descriptor from which an `Allowance` is read; -1 for a process that needs none.

    With it, the others are on other machines: limits are not divided, and all seeds come in batches.
    """
    until: float = 0.0
    """Until when it may crawl, to begin with."""

    @property
    def is_alone(self) -> bool:
        """Whether the others are on other machines."""
        return self.pipe >= 0


def is_child() -> bool:
    """Tell whether this process is one of several of a crawl."""
    return bool(os.environ.get(SPECIFICATION))


def specification() -> Specification:
    """Return which process of a crawl this is; raises AmicrawlError in one that is not a child."""
    try:
        return Specification.model_validate_json(os.environ.get(SPECIFICATION, ""))
    except ValidationError as error:
        raise AmicrawlError(f"{SPECIFICATION} cannot be read. It is for amicrawl's own use.") from error
