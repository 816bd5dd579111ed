"""Credentials: what a crawl says of itself to single hosts, read once from where settings point.

Basic authentication (RFC 7617) goes to the one host it is for, over https and to that scheme's port,
unless the settings say otherwise; cookies go by RFC 6265. Both are chosen anew for every request by its
URL, so that no redirect takes them elsewhere, and their values are not shown in what is archived.
"""

from __future__ import annotations

import time
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.crawl.host_overrides import plain_host
from amicrawl.crawlfile import cookie_field, is_reference, read_cookies, resolve
from amicrawl.errors import InputError, UsageError
from amicrawl.fetch import proxy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.config import CrawlConfig
    from amicrawl.crawlfile import Cookie
    from amicrawl.urls import Fetchable

_PORTS = {"http": 80, "https": 443}


class Auth(NamedTuple):
    """What is said to one host."""

    value: bytes
    """The value of the `Authorization` field."""
    port: int | None
    """The port it is for; None: the one of the scheme."""
    allow_plain: bool
    """Whether it goes over http."""


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """The secrets of one crawl; not to be printed."""

    auth: Mapping[str, Auth]
    """By host name in lower case."""
    cookies: tuple[Cookie, ...] = ()
    proxy: str = ""
    """The proxy of every request, with its password; empty for none."""
    clock: Callable[[], float] = time.time

    def fields_for(self, target: Fetchable) -> list[tuple[bytes, bytes]]:
        """Return the fields that a request for *target* carries, whose values are secret."""
        fields = []
        auth = self.auth.get(target.host.lower().removesuffix("."))
        if auth is not None and _is_for(auth, target):
            fields.append((b"Authorization", auth.value))
        cookie = cookie_field(self.cookies, target.wire_url, now=self.clock()) if self.cookies else ""
        if cookie:
            fields.append((b"Cookie", cookie.encode("ascii")))
        return fields

    def added_to(
        self, fields: Sequence[tuple[bytes, bytes]], target: Fetchable
    ) -> tuple[list[tuple[bytes, bytes]], frozenset[bytes]]:
        """Return *fields* and the secret ones for *target* that are not among them, and their names."""
        own = {name.lower() for name, _ in fields}
        secret = [field for field in self.fields_for(target) if field[0].lower() not in own]
        return [*fields, *secret], frozenset(name.lower() for name, _ in secret)

    def added_to_browsers(
        self, fields: Sequence[tuple[bytes, bytes]], target: Fetchable
    ) -> tuple[list[tuple[bytes, bytes]], frozenset[bytes]]:
        """Do so for a browser, in whose field the cookies that its pages were given stand beside these.

        Of one name, it is that of the page which counts: the server has given it since.
        """
        given = [value for name, value in fields if name.lower() == b"cookie"]
        secret = [
            cookie
            for name, value in self.fields_for(target) if name == b"Cookie"
            for cookie in value.split(b"; ")
        ]  # fmt: skip
        if not given or not secret:
            return self.added_to(fields, target)
        names = {_name(cookie) for value in given for cookie in value.split(b";")}
        cookies = b"; ".join([*given, *(cookie for cookie in secret if _name(cookie) not in names)])
        others = [field for field in fields if field[0].lower() != b"cookie"]
        added, hidden = self.added_to([*others, (b"Cookie", cookies)], target)
        return added, hidden | {b"cookie"}


def read_credentials(config: CrawlConfig, *, base: Path = Path()) -> Credentials:
    """Return what the references in *config* point at; relative paths start from *base*.

    Raises InputError where one leads nowhere, and UsageError where a setting holds a secret itself.
    """
    auth = {
        plain_host(host): _auth(host, override, base)
        for host, override in config.host_overrides.items()
        if _has_auth(host, override)
    }
    cookies: tuple[Cookie, ...] = ()
    if config.cookies:
        content = resolve(config.cookies, base, of="AMICRAWL_COOKIES")
        cookies = read_cookies(content, name=config.cookies)
    return Credentials(auth, cookies, _proxy(config.proxy, base))


def redaction_note(config: CrawlConfig) -> dict[str, str]:
    """Return the warcinfo field that says which values the request records do not show."""
    names = (
        ["Authorization"] if any(entry.get("auth") for entry in config.host_overrides.values()) else []
    )
    names += ["Cookie"] if config.cookies else []
    return {"redacted": f"values of {' and '.join(names)} fields in request records"} if names else {}


def _name(cookie: bytes) -> bytes:
    return cookie.partition(b"=")[0].strip()


def _is_for(auth: Auth, target: Fetchable) -> bool:
    port = _PORTS[target.scheme]
    if (target.port or port) != (auth.port or port):
        return False
    return target.scheme == "https" or auth.allow_plain


def _has_auth(host: str, override: Mapping[str, object]) -> bool:
    """Tell whether *override* has a password for *host*; raises UsageError for half of it."""
    if override.get("auth"):
        return True
    for name in ("auth_port", "allow_plain"):
        if name in override:
            raise UsageError(
                f"Setting AMICRAWL_HOST_OVERRIDES has {name} for {host}, which says how auth is sent, "
                "and no auth. Add auth, or take it out."
            )
    return False


def _auth(host: str, override: Mapping[str, object], base: Path) -> Auth:
    secret = resolve(str(override["auth"]), base, of=f"auth of {host} in AMICRAWL_HOST_OVERRIDES")
    if ":" not in secret or not secret.isprintable():
        raise InputError(
            f"What auth of the host {host} points at is not user:password on one line. Write it so."
        )
    port, allow_plain = override.get("auth_port"), override.get("allow_plain", False)
    if port is not None and (type(port) is not int or not 1 <= port <= 65535):
        raise _refused(host, "auth_port", port, "a whole number from 1 to 65535")
    # A word would be true whatever it says, and the password go over http.
    if type(allow_plain) is not bool:
        raise _refused(host, "allow_plain", allow_plain, "true or false")
    return Auth(b"Basic " + b64encode(secret.encode()), port, allow_plain)


def _refused(host: str, what: str, value: object, must_be: str) -> UsageError:
    return UsageError(
        f"Setting AMICRAWL_HOST_OVERRIDES has {what} = {value!r} for {host}: it must be {must_be}."
    )


def _proxy(written: str, base: Path) -> str:
    if not written:
        return ""
    proxy = resolve(written, base, of="AMICRAWL_PROXY").strip() if is_reference(written) else written
    if "@" in written and not is_reference(written):
        raise UsageError(
            "AMICRAWL_PROXY has a user name or a password in it, and settings are archived. Keep the "
            "URL elsewhere, and write env:NAME or file:PATH."
        )
    proxy_of(proxy)
    return proxy
