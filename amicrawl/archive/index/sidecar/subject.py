"""What detectors look at: a payload, decoded, and what was said of it when it was captured."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from amicrawl.reading import Record

CONTENT_LIMIT = 8 << 20
"""Bytes of a payload that are decoded and looked at."""

_LAST_LABEL = re.compile(r"(?a)[a-z]{2,24}")
_LANGUAGE_LIST = re.compile(r"[A-Za-z0-9, -]{1,64}")


class Subject:
    """One payload, decoded, and what was said of it when it was captured. All of it is untrusted."""

    def __init__(
        self,
        content: bytes,
        *,
        url: str = "",
        status: int | None = None,
        content_type: str = "",
        content_language: str = "",
        is_whole: bool = True,
    ) -> None:
        self.content = content
        """The payload with transfer and content codings undone, up to `CONTENT_LIMIT`."""
        self.url = url
        self.status = status
        """The HTTP status; None where there was none, as with resources, which says nothing."""
        self.content_type = content_type
        self.content_language = content_language
        self.is_whole = is_whole
        """Whether `content` ends where the payload ends."""

    @cached_property
    def declared_type(self) -> str:
        """The media type of `content_type`, in lower case and without parameters."""
        return self.content_type.partition(";")[0].strip().lower()

    @cached_property
    def top_level_domain(self) -> str:
        """The last label of the host if it consists of letters; empty otherwise."""
        try:
            host = urlsplit(self.url).hostname or ""
        except ValueError:
            return ""
        label = host.rstrip(".").rpartition(".")[2].lower()
        return label if _LAST_LABEL.fullmatch(label) and "." in host else ""

    @cached_property
    def name_ending(self) -> str:
        """What follows the last dot of the URL's last path segment, in lower case; empty without one."""
        try:
            last = urlsplit(self.url).path.rpartition("/")[2]
        except ValueError:
            return ""
        return last.rpartition(".")[2].lower() if "." in last else ""

    @property
    def language_hint(self) -> str:
        """`content_language` where it looks like a list of language tags; empty otherwise."""
        return self.content_language if _LANGUAGE_LIST.fullmatch(self.content_language) else ""


def subject_of(record: Record) -> Subject | None:
    """Return the payload of *record*; None where detectors do not look at its kind, or it is empty.

    Responses and resources are looked at, except those of `dns:` URIs.
    """
    if record.type not in ("response", "resource") or record.uri[:4].lower() == "dns:":
        return None
    content = record.content(CONTENT_LIMIT)
    if not content:
        return None
    sent = record.http_field(b"content-type") if record.is_http else None
    declared = record.fields.get("content-type", "") if not record.is_http else ""
    language = record.http_field(b"content-language") or b""
    return Subject(
        content,
        url=record.uri,
        status=record.http_status,
        content_type=sent.decode("latin-1") if sent else declared,
        content_language=language.decode("latin-1"),
        is_whole=not record.is_cut and len(content) < CONTENT_LIMIT,
    )
