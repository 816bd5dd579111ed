"""Visitors: who makes a request, what they may do, and whether a change really comes from them.

Without a users file every client that reaches the dashboard is an admin; then it is bound to this
machine. With one, a browser has a session and a program a token. A change needs, in this order: a page
of ours as its origin, a user who is signed in, the token against forged requests (bearers need none: no
browser sends their header by itself), and the role.

Sessions are kept in this process only, under the hash of what the browser holds: 256 random bits. A
session ends after twelve hours without a request, after seven days, when the user's password changes,
and when the dashboard does. The token that a form or a script has to send along with a change is derived
from the session, so a page of another site cannot know it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from amicrawl.errors import AmicrawlError
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.users import Role, User

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request

    from amicrawl.fleet.dashboard.users import Users

logger = logging.getLogger(__name__)

TRIES = 5
EVERY = 180.0
"""Seconds until a try comes back."""
_REMEMBERED = 10_000


class Throttle:
    """Counts the failures of keys. For several threads."""

    def __init__(self, *, tries: int = TRIES, clock: Callable[[], float] = time.monotonic) -> None:
        self._tries = tries
        self._clock = clock
        self._lock = threading.Lock()
        self._full_at: OrderedDict[str, float] = OrderedDict()
        """When a key will have all of its tries again."""

    def taken(self, key: str) -> float:
        """Take a try from *key* and return 0; where it has none, the seconds until one comes back.

        Whether the try was wrong is not known yet: several at a time must not be more than there are.
        """
        now = self._clock()
        with self._lock:
            full_at = max(now, self._full_at.get(key, now))
            wait = full_at - now - (self._tries - 1) * EVERY
            if wait > 0:
                return wait
            self._full_at[key] = full_at + EVERY
            self._full_at.move_to_end(key)
            while len(self._full_at) > _REMEMBERED:
                self._full_at.popitem(last=False)
            return 0.0

    def returned(self, key: str) -> None:
        """Give *key* back the try that was taken last: it was right, or not made."""
        with self._lock:
            if key in self._full_at:
                self._full_at[key] -= EVERY

    def succeeded(self, *keys: str) -> None:
        """Give *keys* all of their tries back."""
        with self._lock:
            for key in keys:
                self._full_at.pop(key, None)


IDLE = 12 * 3600.0
"""Seconds without a request after which a session is over."""
LONGEST = 7 * 86400.0
"""Seconds after which it is over in any case."""
_MOST = 1000


@dataclass(slots=True)
class Session:
    """One browser that has signed in."""

    name: str
    password: str
    """The user's password as it is kept: when that changes, the session is over."""
    began: float
    seen: float


class Sessions:
    """The sessions of one dashboard. For several threads."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._clock = clock
        self._most = most
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        """By the hash of their key; the one seen longest ago first."""

    def begin(self, name: str, password: str) -> str:
        """Return the key of a new session of *name*; the one unused for longest may have to go."""
        key = secrets.token_urlsafe(32)
        now = self._clock()
        with self._lock:
            self._sessions[_hash(key)] = Session(name, password, now, now)
            while len(self._sessions) > self._most:
                self._sessions.popitem(last=False)
        return key

    def get(self, key: str) -> Session | None:
        """Return the session of *key* unless it is over; it counts as used."""
        hashed, now = _hash(key), self._clock()
        with self._lock:
            session = self._sessions.get(hashed)
            if session is None:
                return None
            if now - session.seen > IDLE or now - session.began > LONGEST:
                del self._sessions[hashed]
                return None
            session.seen = now
            self._sessions.move_to_end(hashed)
            return session

    def end(self, key: str) -> None:
        """Forget the session of *key*."""
        with self._lock:
            self._sessions.pop(_hash(key), None)

    def csrf(self, key: str) -> str:
        """Return the token that changes made in the session of *key* carry; "" stands for none."""
        return hmac.new(self._secret, b"csrf " + key.encode(), "sha256").hexdigest()

    def is_csrf(self, token: str, key: str) -> bool:
        """Tell whether *token* is that of *key*."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.csrf(key).encode())


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


COOKIE = "amicrawl_session"
CSRF_HEADER = "x-csrf-token"
_SAFE = frozenset({"GET", "HEAD"})
_TRIES_OF_A_NAME = 50
"""More than an address has: otherwise anybody could lock a user out by being wrong on purpose."""
_KNOWN_BEARERS = 100
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Visitor:
    """The visitor of a request."""

    name: str
    """Empty where no sign-in is required."""
    role: Role
    session: str = ""
    """The key of the session."""
    is_bearer: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What a page and the API tell about the visitor."""
        return {
            "name": self.name,
            "role": self.role.name,
            "may_operate": self.role >= Role.operate,
            "may_admin": self.role >= Role.admin,
        }


SIGNED_OUT = {"name": "", "role": "view", "may_operate": False, "may_admin": False}
"""What a page gets about a visitor who has not signed in."""


class Visitors:
    """Identifies visitors. For several threads."""

    def __init__(self, users: Users | None, *, sessions: Sessions | None = None) -> None:
        self.users = users
        self.sessions = Sessions() if sessions is None else sessions
        self._by_address = Throttle()
        self._by_name = Throttle(tries=_TRIES_OF_A_NAME)
        self._hashing = threading.Semaphore(2)
        """A hash takes 16 MiB: a storm of log-ins must wait rather than fill the memory."""
        self._bearers: OrderedDict[bytes, str] = OrderedDict()
        """Tokens that were right, hashed, with what was kept for them; a hash a request were dear."""
        self._lock = threading.Lock()
        self._bearing = threading.Lock()
        self._fault = ""
        """Why the users file could not be read the last time; empty where it could."""

    @property
    def signed_out(self) -> dict[str, Any]:
        """What the API reports about a visitor who has not signed in."""
        return dict(SIGNED_OUT)

    def of(self, request: Request) -> Visitor | None:
        """Return who makes *request*, None where that is not known. Blocks: not for the event loop.

        Raises Problem for a token that is wrong, or while the users file cannot be read.
        """
        if self.users is None:
            return Visitor("", Role.admin)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.casefold() == "bearer":
            user = self._bearer(token.strip(), address_of(request))
            return Visitor(user.name, user.role, is_bearer=True)
        key = request.cookies.get(COOKIE, "")
        session = self.sessions.get(key) if key else None
        found = None if session is None else self._user(session.name)
        if session is None or found is None or found.password != session.password:
            return None
        return Visitor(found.name, found.role, session=key)

    def require(self, request: Request, role: Role) -> Visitor:
        """Return who makes *request*; Problem where they may not, or it was not them. Blocks."""
        is_change = request.method not in _SAFE
        self.check_origin(request, is_change=is_change)
        visitor = self.of(request)
        if visitor is None:
            raise Problem(401, "Sign in first, or send a token.", headers={"www-authenticate": "Bearer"})
        if is_change and not visitor.is_bearer:
            self.check_csrf(request.headers.get(CSRF_HEADER, ""), visitor.session)
        if visitor.role < role:
            raise Problem(403, f"This takes the role {role.name}; yours is {visitor.role.name}.")
        return visitor

    def check_origin(self, request: Request, *, is_change: bool) -> None:
        """Raise Problem where a page of another site has had *request* made.

        What only reads is refused to other sites by `Sec-Fetch-Site` alone, so that links work.
        """
        site = request.headers.get("sec-fetch-site")
        own = f"{request.url.scheme}://{request.headers['host']}"
        if is_change:
            may = may_change(origin=request.headers.get("origin"), fetch_site=site, own=own)
        else:
            may = (
                site not in {"cross-site", "same-site"}
                or request.headers.get("sec-fetch-mode") == "navigate"
            )
        if not may:
            raise Problem(403, "This request was made by a page of another site.")

    def check_csrf(self, token: str, session: str) -> None:
        """Raise Problem unless *token* is that of *session*."""
        if not self.sessions.is_csrf(token, session):
            raise Problem(
                403, "The token against forged requests is missing or old. Load the page again."
            )

    def sign_in(self, request: Request, name: str, password: str) -> str:
        """Return the key of a new session; Problem where the password is wrong. Blocks."""
        if self.users is None:
            raise Problem(404, "No sign-in is required here: there is no users file.")
        address, tried = address_of(request), name[:_LONGEST_NAME]
        with self._trying(address, tried), self._hashing:
            user = self.users.signed_in(name, password)
        if user is None or user.password is None:
            raise Problem(401, "That name and that password do not belong together.")
        self._was_right(address, tried)
        return self.sessions.begin(user.name, user.password)

    def _user(self, name: str) -> User | None:
        assert self.users is not None
        with self._reading():
            return self.users.get(name)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise Problem where the users file cannot be read: why is for the log, not for any client."""
        try:
            yield
        except AmicrawlError as error:
            if str(error) != self._fault:
                self._fault = str(error)
                logger.warning("No user can sign in, or is known: %s", error)
            raise Problem(
                503, "The users file cannot be read; the log of the dashboard says why."
            ) from error
        self._fault = ""

    def _bearer(self, token: str, address: str) -> User:
        user = self._known_bearer(token)
        if user is not None:
            return user
        # One at a time: of several requests at once with a token that is right, one takes a try.
        with self._bearing:
            return self._known_bearer(token) or self._new_bearer(token, address)

    def _known_bearer(self, token: str) -> User | None:
        name, _, rest = token.partition(".")
        user = self._user(name)
        with self._lock:
            known = self._bearers.get(_hash(token))
        if user is None or known is None or user.tokens.get(rest.partition(".")[0]) != known:
            return None
        return user

    def _new_bearer(self, token: str, address: str) -> User:
        assert self.users is not None
        name, _, rest = token.partition(".")
        with self._trying(address, name[:_LONGEST_NAME]):
            user = self.users.bearer(token)
        if user is None:
            raise Problem(401, "The token is not valid.", headers={"www-authenticate": "Bearer"})
        self._was_right(address, name[:_LONGEST_NAME])
        with self._lock:
            self._bearers[_hash(token)] = user.tokens[rest.partition(".")[0]]
            while len(self._bearers) > _KNOWN_BEARERS:
                self._bearers.popitem(last=False)
        return user

    @contextmanager
    def _trying(self, address: str, name: str) -> Iterator[None]:
        """Take a try of both; it counts as not made where the users file cannot be read."""
        self._take_try(address, name)
        try:
            with self._reading():
                yield
        except Problem:
            self._by_address.returned(address)
            self._by_name.returned(name)
            raise

    def _take_try(self, address: str, name: str) -> None:
        wait = self._by_address.taken(address)
        if not wait and (wait := self._by_name.taken(name)):
            self._by_address.returned(address)
        if wait > 0:
            raise Problem(
                429,
                f"Too many wrong tries. Wait {int(wait) + 1} seconds.",
                headers={"retry-after": str(int(wait) + 1)},
            )

    def _was_right(self, address: str, name: str) -> None:
        self._by_address.succeeded(address)
        self._by_name.returned(name)


def may_change(*, origin: str | None, fetch_site: str | None, own: str) -> bool:
    """Tell whether a request for a change comes from a page of ours, or from no page at all.

    *origin* and *fetch_site* are the headers `Origin` and `Sec-Fetch-Site`, *own* is our origin as the
    request addresses it. Browsers send the first with every POST; programs send neither.
    """
    if fetch_site is not None and fetch_site != "same-origin":
        return False
    return origin is None or origin.casefold() == own.casefold()


def address_of(request: Request) -> str:
    """Return where *request* comes from: its address, or of IPv6 the network that one host has."""
    host = request.client.host if request.client is not None else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return str(ip_network((int(address) >> 64 << 64, 64)))
        address = address.ipv4_mapped
    return str(address)
