"""Scripts: the scripts, workers and files that JavaScript names by literals. Pure; nothing is run.

    import "./a.js"      import x from "./a.js"      export * from "./a.js"      import("./a.js")
    new URL("a.png", import.meta.url)      new Worker("a.js")      importScripts("a.js")

These forms are searched for by their words, and passed over in comments. A script is not parsed: with
tree-sitter that took 108 ms for a megabyte of 1,319 scripts, and not 3.7, and the references were the
same. What a program puts together while it runs is not here.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from amicrawl.discovery.kinds import Found, Kind
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_REFERENCES = 5000
"""References of each form in one script that are looked at."""
MOST_IN_MAP = 1000
"""Values of an import map."""
_WINDOW = 4096
"""Bytes before a reference in which the beginning of a comment is looked for."""

_GAP = rb"(?>(?:\s{1,200}+|/\*[^*]{0,200}+\*/){0,8})"
_LITERAL = rb"""(?:"([^"\\\n`]{1,4096}+)"|'([^'\\\n`]{1,4096}+)'|`([^`\\$\n]{1,4096}+)`)"""
_CALL = _GAP + rb"\(" + _GAP + _LITERAL
# Each begins with its word, which makes the search ten times as fast as one for all of them.
_FORMS = (
    (b"import", re.compile(rb"import" + _GAP + _LITERAL), "script import"),
    (b"import", re.compile(rb"import" + _CALL + _GAP + rb"[,)]"), "script import"),
    (b"from", re.compile(rb"from" + _GAP + _LITERAL), "script import"),
    (
        b"import.meta",
        re.compile(rb"URL" + _CALL + _GAP + rb"," + _GAP + rb"import\.meta\.url"),
        "script url",
    ),
    (b"Worker", re.compile(rb"Worker" + _CALL), "script worker"),
    (b"importScripts", re.compile(rb"importScripts" + _CALL), "worker script"),
)
_KEYWORDS = frozenset({b"import", b"from"})
_IS_CODE = re.compile(r"[\"'<>{}\s]")
_IS_ADDRESS = re.compile(r"\.{0,2}/|https?://")
_IN_NAME = re.compile(rb"[\w$]")
_BEFORE_LINE_COMMENT = frozenset(b" \t\r;{}),")
_NEVER_BEFORE_COMMENT = frozenset(
    b"*.\"'/_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_MOST_LOOKS = 16
"""Beginnings of comments before a reference that are looked at, and slashes in a package's name."""


def references(
    script: bytes, charset: str = "utf-8", *, imports: Mapping[str, str] | None = None
) -> Iterator[Found]:
    """Yield what *script* names; all of it is requisite. *imports* are the entries of its import map.

    The address of a `script worker` is relative to the page that runs *script*, others to *script*.
    Names of packages are not addresses, and are left out where *imports* have none for them.
    """
    for word, form, where in _FORMS:
        if word not in script:
            continue
        for match in islice(form.finditer(script), MOST_REFERENCES):
            text = match[match.lastindex or 0].decode(charset, "replace")
            if where == "script import" and not _IS_ADDRESS.match(text):
                text = _mapped(text, imports or {})
            if (
                text
                and not _IS_CODE.search(text)
                and not _is_passed_over(script, match.start(), has_owner=word not in _KEYWORDS)
            ):
                yield text, Kind.REQUISITE, where


def import_map(text: bytes) -> dict[str, str]:
    """Return the entries of the import map *text* (WHATWG HTML), those of its scopes too.

    Empty for what is none.
    """
    try:
        said = parsed(text, most=MOST_IN_MAP)
    except ValueError:
        return {}
    if not isinstance(said, dict):
        return {}
    scopes = said.get("scopes")
    maps = [said.get("imports"), *(scopes.values() if isinstance(scopes, dict) else ())]
    return {
        name: address
        for each in maps
        if isinstance(each, dict)
        for name, address in each.items()
        if isinstance(address, str)
    }


def _mapped(name: str, imports: Mapping[str, str]) -> str:
    """Return the address that *imports* have for *name*, or an empty text."""
    if not imports or name in imports:
        return imports.get(name, "")
    end = len(name)
    # The longest prefix counts. It is looked for in the name: a map may have a thousand entries.
    for _ in range(_MOST_LOOKS):
        end = name.rfind("/", 0, end)
        if end < 0:
            break
        if address := imports.get(name[: end + 1]):
            return address + name[end + 1 :]
    return ""


def _is_passed_over(script: bytes, at: int, *, has_owner: bool) -> bool:
    """Return whether what is at *at* is a part of a longer name, or in a comment.

    With *has_owner*, it may be a name of something: `self.Worker`, and no `Array.from`.
    """
    if script.endswith(b"Shared", 0, at):
        at -= len(b"Shared")
    before = script[at - 1 : at]
    if _IN_NAME.match(before) or (before == b"." and not has_owner):
        return True
    start = max(at - _WINDOW, 0)
    return _is_in_line_comment(script, start, at) or _is_in_comment(script, start, at)


def _is_in_line_comment(script: bytes, start: int, at: int) -> bool:
    line = max(script.rfind(b"\n", start, at) + 1, start)
    slashes = script.find(b"//", line, at)
    for _ in range(_MOST_LOOKS):
        if slashes < 0:
            return False
        if slashes == line or script[slashes - 1] in _BEFORE_LINE_COMMENT:
            return True
        slashes = script.find(b"//", slashes + 2, at)
    return False


def _is_in_comment(script: bytes, start: int, at: int) -> bool:
    end = at
    for _ in range(_MOST_LOOKS):
        begins = script.rfind(b"/*", start, end)
        if begins < 0 or script.find(b"*/", begins + 2, at) >= 0:
            return False
        # `image/*` and `**/*.js` in a string or in a comment to the end of the line begin none.
        is_part = begins and script[begins - 1] in _NEVER_BEFORE_COMMENT
        if not is_part and not _is_in_line_comment(script, start, begins):
            return True
        end = begins + 1
    return False
