"""The categories of a summary: which group a media type, a status, a path and a query belong to. Pure.

The groups and their order are those of the Internet Archive's cdx-summary, so that figures of both can
be laid side by side. Its oddities are kept: `application/x-javascript` and `text/csv` are Other.
"""

from __future__ import annotations

MIME_GROUPS = (
    "HTML",
    "Image",
    "CSS",
    "JavaScript",
    "JSON",
    "XML",
    "Text",
    "PDF",
    "Font",
    "Audio",
    "Video",
    "Revisit",
    "Other",
)
STATUS_GROUPS = ("2XX", "3XX", "4XX", "5XX", "Other")
PATH_GROUPS = ("P0", "P1", "P2", "P3", "P4", "Other")
QUERY_GROUPS = ("Q0", "Q1", "Q2", "Q3", "Q4", "Other")
MONTHS = tuple(f"{month:02d}" for month in range(1, 13))

_BY_TOKEN = {
    "html": "HTML",
    "image": "Image",
    "css": "CSS",
    "javascript": "JavaScript",
    "json": "JSON",
    "xml": "XML",
    "plain": "Text",
    "pdf": "PDF",
    "font": "Font",
    "audio": "Audio",
    "video": "Video",
    "revisit": "Revisit",
    "other": "Other",
}


def mime_group(mime: str) -> str:
    """Return the group of the media type *mime*: its subtype decides, then its main type."""
    lower = mime.lower()
    main, _, sub = lower.partition("/")
    named = _BY_TOKEN.get(sub) or _BY_TOKEN.get(main)
    if named:
        return named
    if sub.startswith("xhtml"):
        return "HTML"
    if sub.endswith("+xml") or sub.startswith("xml-"):
        return "XML"
    return "Other"


def status_group(status: str) -> str:
    """Return the group of *status*, three digits or a hyphen."""
    return f"{status[0]}XX" if "200" <= status <= "599" else "Other"


def path_group(segments: int) -> str:
    """Return the row for a path of that many segments."""
    return PATH_GROUPS[min(segments, 5)]


def query_group(parameters: int) -> str:
    """Return the column for a query of that many parameters."""
    return QUERY_GROUPS[min(parameters, 5)]
