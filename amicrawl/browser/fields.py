"""Fields: what goes with each request of the browser, from Chromium and from the operator. Pure.

`DEFAULT_REQUEST_HEADERS` counts in a browser, too: what it names takes the place of Chromium's own, on
each request. `Accept` stays Chromium's, who requests an image with another one than a page; what says
how a message is framed, where it is from or which part is wanted cannot be the same for all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.browser.proxy import Fields

_OF_EACH_REQUEST = frozenset(
    {"connection", "cookie", "expect", "host", "keep-alive", "origin", "range", "referer", "te"}
    | {"service-worker", "trailer", "transfer-encoding", "upgrade", "upgrade-insecure-requests"}
)
_OF_EACH_KIND = ("content-", "if-", "proxy-", "sec-")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-[A-Za-z]{2}|-[0-9]{3})?")
_NOT_REPLAYED = b", zstd"
"""The coding that Chromium welcomes and replay tools cannot undo."""


@dataclass(frozen=True)
class OwnFields:
    """The fields of an operator, by their names in lower case; one whose value is None is not sent."""

    user_agent: str = ""
    """What says who crawls."""
    named: Mapping[str, tuple[str, str | None]] | None = None
    """The others: their names as written, and their values."""

    @classmethod
    def of(cls, fields: Mapping[str, object], *, user_agent: str) -> OwnFields:
        """Return those of *fields*, where *user_agent* stands for none. Raises UsageError."""
        named = {
            str(name).lower(): (str(name), None if value is None else str(value))
            for name, value in fields.items()
        }
        for name, (written, _) in named.items():
            if name in _OF_EACH_REQUEST or name.startswith(_OF_EACH_KIND):
                instead = (
                    "Name a file of cookies in AMICRAWL_COOKIES"
                    if name == "cookie"
                    else "Leave it out, or crawl without AMICRAWL_BROWSER"
                )
                raise UsageError(
                    f"DEFAULT_REQUEST_HEADERS names {written}, which is Chromium's own for each request "
                    f"of a page. {instead}."
                )
        named.pop("accept", None)
        _, agent = named.pop("user-agent", ("", user_agent))
        return cls(agent or "", named)

    @property
    def language(self) -> str:
        """The language that is named first; empty where none is, or not in the usual form."""
        _, value = (self.named or {}).get("accept-language", ("", ""))
        first = re.split("[,;]", value or "")[0].strip()
        return first if _LANGUAGE.fullmatch(first) else ""

    def agent_of(self, version: str) -> str:
        """Return the `User-Agent` of Chromium *version*: a server finds who crawls, and by what."""
        if self.user_agent.startswith("Mozilla/"):
            return self.user_agent
        number = version.partition(".")[0]
        chrome = (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
            f"Chrome/{number}.0.0.0 Safari/537.36"
        )
        return f"{chrome} {self.user_agent}".rstrip()

    def as_sent(self, fields: Fields, *, user_agent: str) -> Fields:
        """Return *fields*, as Chromium wrote them, with these in their places."""
        # Chromium itself has another `User-Agent` for the scripts of shared and service workers.
        own = {**(self.named or {}), "user-agent": ("User-Agent", user_agent)}
        sent: Fields = []
        for name, value in fields:
            key = name.decode("latin-1").lower()
            if key == "accept-encoding" and value == b"identity":
                # Chromium takes a part of what it requests: no part of a coded body can be decoded.
                own.pop(key, None)
                sent.append((name, value))
            elif key in own:
                value_of_own = own.pop(key)[1]
                if value_of_own is not None:
                    sent.append((name, value_of_own.encode()))
            elif key == "accept-encoding":
                sent.append((name, value.replace(_NOT_REPLAYED, b"")))
            else:
                sent.append((name, value))
        further = [
            (name.encode("ascii"), value.encode()) for name, value in own.values() if value is not None
        ]
        return [*sent, *further]
