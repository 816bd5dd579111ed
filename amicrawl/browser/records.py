"""What is kept of a page besides its exchanges: its text, a picture, and what became of it. Pure.

    urn:text:URL        the text that a reader sees, after the title and a blank line
    urn:screenshot:URL  a picture of the window, JPEG
    urn:pageinfo:URL    JSON: what the page requested, what its scripts threw, and how it ended

They are `resource` records before the response of the page, and name it by `WARC-Concurrent-To`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import orjson

from amicrawl.record import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.capture import Failure

MOST_TEXT = 2_000_000
"""Characters of the text of a page that are kept."""
_MOST_URLS = 5000
_MOST_FAULTS = 100


class Excluded(NamedTuple):
    """Why something that a page wants is not requested."""

    failure: Failure
    reason: str


@dataclass(slots=True)
class Rendered:
    """What a browser has shown of a page."""

    title: str = ""
    text: str = ""
    links: list[tuple[str, str]] | None = None
    """URLs, and what named each; None where the page did not get so far."""
    screenshot: bytes = b""
    faults: list[str] = field(default_factory=list)
    """What its scripts threw, and what else went wrong."""
    refused: list[str] = field(default_factory=list)
    """What it tried and may not: windows, downloads, dialogs, navigation."""
    went_to: list[str] = field(default_factory=list)
    """URLs that its scripts wanted to go to, or to open."""
    ended: str = ""
    """Why it was left: it was `quiet`, or `restless` to the end; its time was up; or what happened."""

    def note_fault(self, text: str) -> None:
        """Note what went wrong, in bounds."""
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(text[:1000])

    def note_refused(self, text: str) -> None:
        """Note what was refused, in bounds."""
        if len(self.refused) < _MOST_FAULTS:
            self.refused.append(text[:1000])


def resources_of(rendered: Rendered, used: Mapping[str, int], *, url: str) -> list[Resource]:
    """Return the further records of the page at *url*, which *used* URLs with these statuses."""
    found = [Resource("urn:pageinfo:", "application/json", _info(rendered, used, url=url))]
    if rendered.title or rendered.text:
        text = f"{rendered.title}\n\n{rendered.text}".encode("utf-8", "replace")
        found.append(Resource("urn:text:", "text/plain; charset=utf-8", text))
    if rendered.screenshot:
        found.append(Resource("urn:screenshot:", "image/jpeg", rendered.screenshot))
    return found


def _info(rendered: Rendered, used: Mapping[str, int], *, url: str) -> bytes:
    urls = dict(list(used.items())[:_MOST_URLS])
    info = {
        "url": url,
        "title": rendered.title,
        "ended": rendered.ended,
        "faults": rendered.faults,
        "refused": rendered.refused,
        "urls": {_sound(name): {"status": status} for name, status in urls.items()},
    }
    return orjson.dumps(_sound_all(info), option=orjson.OPT_INDENT_2)


def _sound(text: str) -> str:
    """Return *text* without halves of surrogate pairs, which scripts may have and UTF-8 has not."""
    return text.encode("utf-8", "replace").decode()


def _sound_all(value: object) -> object:
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, list):
        return [_sound_all(each) for each in value]
    if isinstance(value, dict):
        return {name: _sound_all(each) for name, each in value.items()}
    return value
