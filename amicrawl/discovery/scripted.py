"""Whether the content of an HTML page is made by its scripts, which a crawl does not run. Pure.

Such a page arrives as a shell: scripts, an empty element that they fill, and neither text nor links. A
page is one if

    it has scripts: a file, or more than a few statements
    and at most `MOST_TEXT` letters and digits of text, and at most `MOST_LINKS` links
    and nothing else to be seen: frame, object, video, form with fields, image map, picture
    and it does not send its reader on (`<meta http-equiv=refresh>`)

Text is what is in the body outside `script`, `style`, `noscript`, `template`, `title`, `textarea` and
`svg`. docs/sites.md has the figures that the limits were chosen by.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.discovery.coding import markup_in, payload_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.capture import Capture
    from amicrawl.discovery.kinds import Link

MOST_TEXT = 60
"""Letters and digits of a shell: "Loading ...", the name of the site."""
MOST_LINKS = 2
"""Links of a shell: to the privacy notice, to the code."""
_MOST_PICTURES = 1
"""Pictures of a shell: the one that turns until the content is there."""
_LEAST_CODE = 200
"""Bytes of scripts in the page itself that can make a page; a counter of visits has fewer."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_READ = 4 << 20
"""Bytes of a page that are looked at."""

_TAG = re.compile(
    rb"<(?:(!--)|(script|style|noscript|template|title|textarea|svg|noframes|head)(?=[\s/>])|"
    rb"(a|img|picture|i?frame|frameset|object|embed|video|audio|map|form|input|select|meta|body|math)(?=[\s/>])|[/!?a-z])"
    rb"[^>]*+>?"
)
_ENDS = {
    name: re.compile(rb"</" + name + rb"(?=[\s/>])[^>]*+>?")
    for name in (
        b"script",
        b"style",
        b"noscript",
        b"template",
        b"title",
        b"textarea",
        b"svg",
        b"noframes",
    )
}
_COMMENT = re.compile(rb"--!?>")
_SOURCE = re.compile(rb"\ssrc\s*=")
_HREF = re.compile(rb"\shref\s*=\s*(?![\"']?(?:#|javascript:))")
_NOT_CODE = re.compile(rb"\stype\s*=\s*[\"']?(?:application/(?:ld\+)?json|text/(?:html|template|x-))")
_REFRESH = re.compile(rb"\shttp-equiv\s*=\s*[\"']?refresh")
_ENTITY = re.compile(rb"&#?[a-z0-9]{1,31};")
_WORDS = re.compile(rb"[a-z0-9\x80-\xff]++")
_NO_DATES = re.compile(rb"[a-z\x80-\xff]{2,}+|[0-9]++[.,][0-9]++|[0-9]{5,}+")
_WORDS_READ = 64 << 10
"""Bytes of a page whose words are compared."""


class Seen(NamedTuple):
    """What a document has for its reader before a script runs."""

    text: int
    """Letters and digits; those beyond ASCII by their bytes."""
    links: int
    pictures: int
    scripts: int
    """Script files."""
    code: int
    """Bytes of scripts in the document itself."""
    others: int
    """Frames, objects, films, fields of forms, and what sends the reader on."""

    @property
    def is_made_by_scripts(self) -> bool:
        """Whether the page is a shell that its scripts fill."""
        return (
            (self.scripts > 0 or self.code >= _LEAST_CODE)
            and self.text <= MOST_TEXT
            and self.links <= MOST_LINKS
            and self.pictures <= _MOST_PICTURES
            and not self.others
        )


def is_shell(capture: Capture) -> bool | None:
    """Return whether the page in *capture* is a shell; None where it is not HTML."""
    if capture.content_type.partition(";")[0].strip().lower() not in _HTML:
        return None
    return _is_made_by_scripts(payload_of(capture, _READ), capture.content_type)


def is_shell_with(links: Iterable[Link], payload: bytes, content_type: str) -> bool | None:
    """Return whether the page with *payload*, which has *links*, is a shell; None where it is not HTML.

    Nearly all pages have more links than a shell, and are not looked into.
    """
    if content_type.partition(";")[0].strip().lower() not in _HTML:
        return None
    anchors = 0
    for link in links:
        if link.where == "a href":
            anchors += 1
            if anchors > MOST_LINKS:
                return False
    return _is_made_by_scripts(payload, content_type)


def _is_made_by_scripts(payload: bytes, content_type: str) -> bool:
    document, _ = markup_in(payload, content_type)
    # A page without scripts is none, and of one with text a little is enough to see that.
    if b"<script" not in document[:_READ].lower():
        return False
    return seen_in(document, most_text=MOST_TEXT).is_made_by_scripts


def words_of(capture: Capture) -> Iterator[bytes]:
    """Yield the words of the HTML page in *capture*, without what a date is made of.

    Lower-case; numbers are among them if they have decimals or five digits.
    """
    document, _ = markup_in(payload_of(capture, _WORDS_READ), capture.content_type)
    lowered = document[:_WORDS_READ].lower()
    position = 0
    while (tag := _TAG.search(lowered, position)) is not None:
        yield from _NO_DATES.findall(lowered, position, tag.start())
        position = tag.end()
        if tag[1] or tag[2] in _ENDS:
            end = (_COMMENT if tag[1] else _ENDS[tag[2]]).search(lowered, position)
            position = end.end() if end else len(lowered)
    yield from _NO_DATES.findall(lowered, position)


def seen_in(document: bytes, *, most_text: int = sys.maxsize) -> Seen:
    """Return what the HTML *document* shows without its scripts; in one pass, without going back.

    What is behind more than *most_text* letters is not looked at.
    """
    lowered = document[:_READ].lower()
    counts = dict.fromkeys(("text", "links", "pictures", "scripts", "code", "others"), 0)
    position = 0
    while (tag := _TAG.search(lowered, position)) is not None:
        counts["text"] += _letters(lowered[position : tag.start()])
        if counts["text"] > most_text:
            break
        position = tag.end()
        if tag[1]:
            end = _COMMENT.search(lowered, tag.start() + 2)
            position = end.end() if end else len(lowered)
        elif tag[2] in _ENDS:
            position = _pass_over(lowered, tag, counts)
        elif tag[3]:
            _count(tag[3], tag[0], counts)
    else:
        counts["text"] += _letters(lowered[position:])
    return Seen(**counts)


def _pass_over(lowered: bytes, tag: re.Match[bytes], counts: dict[str, int]) -> int:
    """Return where the element that begins with *tag* ends, having counted it if it is a script."""
    end = _ENDS[tag[2]].search(lowered, tag.end())
    if tag[2] == b"script" and not _NOT_CODE.search(tag[0]):
        if _SOURCE.search(tag[0]):
            counts["scripts"] += 1
        else:
            counts["code"] += (end.start() if end else len(lowered)) - tag.end()
    return end.end() if end else len(lowered)


def _count(name: bytes, tag: bytes, counts: dict[str, int]) -> None:
    """Count an element that begins with *tag*."""
    if name == b"a":
        counts["links"] += _HREF.search(tag) is not None
    elif name in (b"img", b"picture"):
        counts["pictures"] += 1
    elif name == b"meta":
        counts["others"] += _REFRESH.search(tag) is not None
    elif name not in (b"form", b"body"):
        counts["others"] += 1


def _letters(text: bytes) -> int:
    if not text or text.isspace():
        return 0
    return sum(map(len, _WORDS.findall(_ENTITY.sub(b" ", text) if b"&" in text else text)))
