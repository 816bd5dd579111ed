"""The key of a capture that was requested with a body: method and body as if they were its query.

Two POSTs to one URL are two pages. So indexes append `__wb_method=POST` and the body, in the form of a
query, to the URL before they make the key of it. The forms here are those of the two indexers whose
lines `cdxj.py` writes; they differ in how JSON values are spelled.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_plus, urlencode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.reading import Record

LONGEST_QUERY = 4096
"""Characters of the body's query that count."""

LONGEST_JSON = 4 << 20
"""Bytes of JSON that are parsed; more is left out, as it takes many times its size in memory."""

_WITHOUT_LENGTH = 8192
_DEEPEST = 500
_MOST_PARTS = 10_000
_BOUNDARY = re.compile(r'boundary=(?:"([^"]*)"|([^;\s]*))', re.IGNORECASE)
_PART_NAME = re.compile(rb'[;\s]name\*?=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))', re.IGNORECASE)
_PART_FILE = re.compile(rb"[;\s]filename\*?=", re.IGNORECASE)


class Keyed(NamedTuple):
    """What a request adds."""

    url: str
    """The URL whose SURT is the key."""
    method: str
    query: str
    """The body as a query, in its own case; empty where there is none."""


def keyed_by_body(request: Record, url: str, *, pywb: bool = False) -> Keyed | None:
    """Return the URL that *request*, for *url*, is to be found under; None where it is *url* itself.

    Only POST and PUT count; for pywb, every method but GET.
    """
    method = request.http_head.partition(b" ")[0].decode("latin-1").upper()
    with_body = method in ("POST", "PUT")
    if not with_body and not (pywb and method and method != "GET"):
        return None
    query = _query(request, pywb=pywb)[:LONGEST_QUERY] if with_body else ""
    appended = f"{'&' if '?' in url else '?'}__wb_method={method}{'&' + query if query else ''}"
    # The prefix is what one tool puts before its own arguments while it records.
    found = (url + appended).replace("WB_wombat_", "") if pywb else url + appended
    return Keyed(found, method, query)


def _query(request: Record, *, pywb: bool) -> str:
    declared = request.http_field(b"content-length")
    length = _WITHOUT_LENGTH
    if declared is not None:
        try:
            length = int(declared[:20])
        except ValueError:
            return ""
    elif pywb:
        return ""
    # One tool reads the body as it was sent, the other without its codings where it has them.
    body = request.body if pywb else request.content() or request.body
    body = body[: max(0, length)]
    if pywb and length <= 0:
        return ""
    content_type = (request.http_field(b"content-type") or b"").decode("latin-1")
    return _as_query(body, content_type, pywb=pywb)


def _as_query(body: bytes, content_type: str, *, pywb: bool) -> str:
    if content_type.startswith("application/x-www-form-urlencoded"):
        try:
            return unquote_plus(body.decode())
        except UnicodeDecodeError:
            return _binary(body)
    if content_type.startswith("multipart/"):
        pairs = _multipart(body, content_type)
        return _binary(body) if pairs is None else urlencode(pairs, doseq=True)
    if content_type.startswith(("application/json", "text/plain")):
        try:
            return _json(body, pywb=pywb)
        except (ValueError, RecursionError):
            return "" if content_type.startswith("application/json") else _binary(body)
    return _binary(body)


def _binary(body: bytes) -> str:
    # The query that counts cannot result from more bytes.
    return "__wb_post_data=" + base64.b64encode(body[:LONGEST_QUERY]).decode()


def _json(body: bytes, *, pywb: bool) -> str:
    """Flatten JSON, or lines of it, to pairs of name and scalar; a name that repeats is numbered."""
    if len(body) > LONGEST_JSON:
        raise ValueError
    try:
        documents = [json.loads(body)]
    except json.JSONDecodeError:
        if pywb or b"\n" not in body:
            raise
        documents = [json.loads(line) for line in body.split(b"\n")]
    pairs: dict[str, str] = {}
    repeats: dict[str, int] = {}
    length = 0
    for document in documents:
        for name, scalar in _scalars(document, "", 0):
            key = name
            if name in pairs:
                repeats[name] = repeats.get(name, 1) + 1
                key = f"{name}.{repeats[name]}_"
            pairs[key] = _spelled(scalar, pywb=pywb)
            length += len(name) + 1
            if length > LONGEST_QUERY:
                return urlencode(pairs)
    return urlencode(pairs)


def _scalars(found: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(found, dict):
        for inner, value in found.items():
            yield from _scalars(value, inner, depth + 1)
    elif isinstance(found, list):
        for value in found:
            yield from _scalars(value, name, depth + 1)
    elif name:
        yield name, found


def _spelled(scalar: Any, *, pywb: bool) -> str:
    if not pywb:
        return str(scalar)
    if scalar is None or isinstance(scalar, bool):
        return json.dumps(scalar)
    if isinstance(scalar, float) and scalar.is_integer():
        return str(int(scalar))
    return str(scalar)


def _multipart(body: bytes, content_type: str) -> list[tuple[str, bytes | str]] | None:
    """Return the fields of a form in parts; None where the boundary is not to be found."""
    match = _BOUNDARY.search(content_type)
    boundary = (match[1] or match[2] or "") if match else ""
    if not boundary:
        return None
    pairs: list[tuple[str, bytes | str]] = []
    sections = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("latin-1"), _MOST_PARTS)
    for section in sections[1:]:
        if section.startswith(b"--"):
            break
        head, blank, value = section.partition(b"\r\n\r\n")
        name = _PART_NAME.search(head)
        if not blank or name is None:
            continue
        text = (name[1] if name[1] is not None else name[2]).decode("utf-8", "replace")
        is_file = _PART_FILE.search(head) is not None
        pairs.append((text, value if is_file else value.decode("utf-8", "replace")))
    return pairs
