"""The users file: who may sign in, as what, with what; one JSON object, readable by its owner alone.

    {"version": 1, "users": {"anna": {
        "role": "operate", "password": "scrypt$...", "tokens": {"a1b2c3d4": "scrypt$..."}}}}

It is replaced as a whole, and read again when it has changed: a user who is removed is out with the next
request. A token is `NAME.ID.SECRET`, so that it is compared with one hash and not with all.

Passwords and tokens are kept as scrypt with a salt of their own (RFC 7914), `scrypt$14$8$1$SALT$KEY`:
log2 of N, r, p, and two texts in URL-safe base64. They are compared in constant time. The costs are in
the text, so that they can be raised and old texts still hold. A text that is invalid, or whose costs
would be an attack, matches nothing.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from amicrawl.disk import OutputFile, readable
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amicrawl.disk import Disk

LEAST = 10
"""Characters that a password has at least."""
MOST = 1024
"""Characters of the longest secret that is looked at."""

_LOG_N, _R, _P = 14, 8, 1
"""16 MiB and some 50 ms: the least that RFC 7914 and OWASP name for a log-in."""
_DEAREST_LOG_N = 17
_LENGTH = 32


def hashed(secret: str, *, salt: bytes | None = None) -> str:
    """Return the text that *secret* is kept as; *salt* is drawn unless a test hands one in."""
    salt = secrets.token_bytes(16) if salt is None else salt
    key = _key(secret, salt, _LOG_N, _R, _P)
    return "$".join(["scrypt", str(_LOG_N), str(_R), str(_P), _encoded(salt), _encoded(key)])


def matches(secret: str, kept: str) -> bool:
    """Tell whether *kept* was made of *secret*."""
    if len(secret) > MOST:
        return False
    words = kept.split("$")
    if len(words) != 6 or words[0] != "scrypt":
        return False
    try:
        log_n, r, p = (int(word) for word in words[1:4])
        salt, key = (base64.urlsafe_b64decode(word) for word in words[4:])
        if not (1 <= log_n <= _DEAREST_LOG_N and 1 <= r <= 16 and 1 <= p <= 4 and len(key) == _LENGTH):
            return False
        return hmac.compare_digest(_key(secret, salt, log_n, r, p), key)
    except ValueError:  # of base64 and of OpenSSL, too
        return False


def _key(secret: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    cost = 1 << log_n
    return hashlib.scrypt(
        secret.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=cost,
        r=r,
        p=p,
        # 128 * N * r is what the algorithm holds; OpenSSL counts a little more.
        maxmem=128 * cost * r + (1 << 20),
        dklen=_LENGTH,
    )


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode()


DECOY = hashed("decoy", salt=bytes(16))
"""What the password of a name that is not there is compared with, so that both take as long."""


VERSION = 1
_LARGEST = 1024**2
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_MOST_TOKENS = 20


class Role(IntEnum):
    """What a user may do; each role may do what those before it may."""

    view = 1
    """See everything."""
    operate = 2
    """Submit and steer jobs, drain pipelines, order the queues."""
    admin = 3
    """Say who may sign in."""


@dataclass(frozen=True, slots=True)
class User:
    """One that may sign in."""

    name: str
    role: Role
    password: str | None = None
    """Hashed; without one there are tokens only."""
    tokens: Mapping[str, str] = field(default_factory=dict)


class LastAdminError(UsageError):
    """A change that would leave no user who may change the others."""


class Users:
    """The users of one file. For several threads and programs; a change is written before it counts."""

    def __init__(self, path: Path, *, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._users: dict[str, User] = {}

    def all(self) -> dict[str, User]:
        """Return them by name; InputError where the file cannot be read, UsageError where others can."""
        with self._lock:
            return dict(self._read())

    def get(self, name: str) -> User | None:
        """Return the one called *name*, as of now."""
        return self.all().get(name)

    def signed_in(self, name: str, password: str) -> User | None:
        """Return the user whose name and password these are. Takes as long for a name that is none."""
        user = self.get(name)
        kept = DECOY if user is None or user.password is None else user.password
        right = matches(password, kept)
        return user if right and user is not None and user.password is not None else None

    def bearer(self, token: str) -> User | None:
        """Return the user whose *token* this is."""
        name, _, rest = token.partition(".")
        ident, _, secret = rest.partition(".")
        user = self.get(name)
        kept = DECOY if user is None else user.tokens.get(ident, DECOY)
        return user if matches(secret, kept) and kept is not DECOY else None

    def put(self, name: str, *, role: Role, password: str | None, keep_admin: bool = False) -> None:
        """Add *name*, or give it another role and, unless None, password; UsageError where it is bad.

        With *keep_admin*, LastAdminError where *name* is the only admin, and would be none.
        """
        if _NAME.match(name) is None:
            raise UsageError(
                f"{name[:80]!r} cannot be the name of a user. Take up to 64 letters, digits, _ and -."
            )
        if password is not None and not LEAST <= len(password) <= MOST:
            other = "longer" if len(password) < LEAST else "shorter"
            raise UsageError(f"A password has {LEAST} to {MOST} characters. Choose a {other} one.")
        kept = None if password is None else hashed(password)
        with self._changing() as users:
            if keep_admin and role is not Role.admin:
                _keep_an_admin(users, name)
            user = users.get(name, User(name, role))
            users[name] = replace(user, role=role, password=user.password if kept is None else kept)

    def add_token(self, name: str) -> str:
        """Return a new token of *name*, kept nowhere; UsageError where there is no such user."""
        ident, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        kept = hashed(secret)
        with self._changing() as users:
            user = _known(users, name)
            if len(user.tokens) >= _MOST_TOKENS:
                raise UsageError(f"{name} has {_MOST_TOKENS} tokens. Remove the user, and add it again.")
            users[name] = replace(user, tokens={**user.tokens, ident: kept})
        return f"{name}.{ident}.{secret}"

    def remove(self, name: str, *, keep_admin: bool = False) -> None:
        """Take *name* out, with its tokens; UsageError where there is no such user.

        With *keep_admin*, LastAdminError where *name* is the only admin.
        """
        with self._changing() as users:
            _known(users, name)
            if keep_admin:
                _keep_an_admin(users, name)
            del users[name]

    @contextmanager
    def _changing(self) -> Iterator[dict[str, User]]:
        """Write what the block makes of the users, while no other program changes them."""
        with self._lock, _locked(self.path):
            users = dict(self._read())
            yield users
            self._write(users)

    def _read(self) -> dict[str, User]:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._seen, self._users = None, {}
            return self._users
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror}.") from error
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{self.path} is not a file.")
        seen = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
        if seen != self._seen:
            if stat.S_IMODE(found.st_mode) & 0o077:
                raise UsageError(
                    f"{self.path} holds passwords and others than its owner can reach it. "
                    f"Run: chmod 600 {self.path}"
                )
            self._users = _users_in(self.path)
            self._seen = seen
        return self._users

    def _write(self, users: Mapping[str, User]) -> None:
        content = {
            "version": VERSION,
            "users": {
                user.name: {
                    "role": user.role.name,
                    "password": user.password,
                    "tokens": dict(user.tokens),
                }
                for user in users.values()
            },
        }
        text = json.dumps(content, indent=2).encode() + b"\n"
        if len(text) > _LARGEST:
            # Otherwise no user could sign in, and no admin remove one.
            raise UsageError(
                f"{self.path} would have more than {_LARGEST >> 20} MiB. Remove users first."
            )
        # The file is there for its owner alone from its first byte on, whatever the umask.
        before = os.umask(0o077)
        try:
            file = OutputFile.replacing(self.path, disk=self._disk)
        finally:
            os.umask(before)
        try:
            file.write(text)
            file.seal()
        finally:
            file.close()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of the file at *path*, where there is one, as long as the block lasts."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            # There is none, or `_read` says what is wrong with it.
            yield
            return
        try:
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether the open file is that at *path* still: who waits for a lock may find it replaced."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _keep_an_admin(users: Mapping[str, User], but: str) -> None:
    admins = {user.name for user in users.values() if user.role is Role.admin}
    if admins == {but}:
        raise LastAdminError(f"{but} is the last admin. Make another user one first.")


def _known(users: Mapping[str, User], name: str) -> User:
    if name not in users:
        raise UsageError(f"There is no user {name[:80]!r}. There are: {', '.join(users) or 'none'}.")
    return users[name]


def _users_in(path: Path) -> dict[str, User]:
    with readable(path), path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    try:
        if len(content) > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST} bytes")
        return _parsed(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a users file ({error}). Restore it, or make a new one with "
            "`amicrawl dashboard user add`."
        ) from error


def _parsed(said: Any) -> dict[str, User]:
    if said["version"] != VERSION:
        raise ValueError(f"its version is {said['version']!r}, not {VERSION}")
    users = {}
    for name, facts in said["users"].items():
        if _NAME.match(name) is None:
            raise ValueError(f"{name[:80]!r} cannot be a name")
        password, tokens = facts.get("password"), facts.get("tokens", {})
        if not isinstance(password, str | None) or not all(
            isinstance(kept, str) for kept in tokens.values()
        ):
            raise TypeError(f"what is kept for {name} is not a string")
        users[name] = User(name, Role[facts["role"]], password, dict(tokens))
    return users
