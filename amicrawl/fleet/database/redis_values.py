"""Values of Redis, which any client may have written: read within bounds, and dead letters of the rest.

A key of another type becomes a dead letter and reads as empty. No value keeps a reader busy for longer,
or makes it hold more, than the bounds that it names. The caller interprets the elements; one that is
longer than the bound is cut.

A dead letter says what was found in Redis and could not be used, with key and reason, for a person to
look at; no program stops for it. Dead letters are in a sorted set of JSON texts by time. Their size and
number are bounded, and one that occurs again only gets a new time.
"""

from __future__ import annotations

import json
import logging
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import redis

from amicrawl.terminal import LIMIT, harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.fleet.database.connection import JobStore

logger = logging.getLogger(__name__)

MOST_FIELDS = 400
"""Fields of a hash that are read."""
LONGEST_VALUE = 65_536
"""Bytes of a field, or of an element, that are read."""
MOST_ELEMENTS = 10_000
"""Elements of a set or list that are read."""
LONGEST_NAME = 1024
"""Bytes of the name of a key that are read."""
LARGEST_READ = 64 << 20
"""Bytes of all that one call reads."""
MOST_DEAD_LETTERS = 1000
"""Dead letters that are kept; the oldest are removed first."""
REPEATED_AFTER = 60.0
"""Seconds after which a dead letter that occurs again gets a new time."""
_AT_ONCE = 500


class DeadLetter(NamedTuple):
    """One thing that could not be read, or acted on."""

    seen: float
    """When it was last met, Unix seconds."""
    where: str
    """The key, and the place in it."""
    why: str
    """What is wrong with it."""
    excerpt: str
    """How it begins, unprintable characters escaped."""


def hash_at(store: JobStore, key: str) -> dict[str, str]:
    """Return the fields of the hash at *key*."""
    return pairs(_elements(store, key, "hash", _reply(store, key, "hash", MOST_FIELDS)))


def hashes_at(
    store: JobStore, keys: Sequence[str], *, always: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Return the fields of each hash; *always* also of one with too many others.

    Each has an equal share of the room, and what those before it have left.
    """
    script = store.scripts.script("read")
    found: list[dict[str, str]] = []
    left = LARGEST_READ
    for at in range(0, len(keys), _AT_ONCE):
        some, share = keys[at : at + _AT_ONCE], left // (len(keys) - at)
        pipe = store.client.pipeline(transaction=False)
        for key in some:
            script(keys=[key], args=["hash", MOST_FIELDS, LONGEST_VALUE, share, *always], client=pipe)
        replies = pipe.execute()
        left -= sum(len(text) for _, _, texts in replies for text in texts)
        found += [
            pairs(_elements(store, key, "hash", reply)) for key, reply in zip(some, replies, strict=True)
        ]
    return found


def set_at(store: JobStore, key: str, *, longest: int = LONGEST_VALUE) -> list[str]:
    """Return the elements of the set at *key*, sorted; one longer than *longest* bytes is left out."""
    found = _elements(store, key, "set", _reply(store, key, "set", MOST_ELEMENTS, longest + 1))
    kept = []
    for element in found:
        if len(octets(element)) > longest:
            put_dead_letter(
                store, where=key, why=f"an element has more than {longest} bytes", value=element
            )
        else:
            kept.append(element)
    return sorted(kept)


def list_at(store: JobStore, key: str) -> list[str]:
    """Return the elements of the list at *key*, left to right; the rightmost of too many."""
    return _elements(store, key, "list", _reply(store, key, "list", MOST_ELEMENTS, 1000))


def scored_at(
    store: JobStore,
    key: str,
    *,
    after: float | None = None,
    before: float | None = None,
    most: int = 1000,
    longest: int = LONGEST_VALUE,
    newest: bool = False,
) -> list[tuple[float, str]]:
    """Return elements of the sorted set at *key* with their scores, ascending.

    Those with scores above *after* and below *before*, the first *most* of them, or the last with
    *newest*.
    """
    lowest = "-inf" if after is None else f"({after:.17g}"
    highest = "+inf" if before is None else f"({before:.17g}"
    reply = _reply(store, key, "zset", most, longest, lowest, highest, "newest" if newest else "")
    found = _elements(store, key, "zset", reply)
    scored = [(float(score), text) for text, score in zip(found[::2], found[1::2], strict=True)]
    return scored[::-1] if newest else scored


def text_at(store: JobStore, key: str, *, longest: int = LONGEST_VALUE) -> str | None:
    """Return the string at *key*; None where there is none, or a longer one."""
    reply = _reply(store, key, "string", 1, longest)
    found = _elements(store, key, "string", reply)
    if found and int(reply[1]) > longest:
        put_dead_letter(
            store, where=key, why=f"it has {reply[1]} bytes, {longest} are read", value=found[0]
        )
        return None
    return found[0] if found else None


def fault_at(store: JobStore, key: str, *, longest: int) -> str:
    """Return why `text_at` has no text in UTF-8 for *key*; empty where it has, or nothing is there."""
    found, length, elements = _reply(store, key, "string", 1, longest)
    if found == "none":
        return ""
    if found != "string":
        return f"it is a {found}"
    if int(length) > longest:
        return f"it has {length} bytes, {longest} are read"
    return "" if all(map(is_utf8, elements)) else "it is not UTF-8"


def count_at(store: JobStore, key: str) -> int:
    """Return the count at *key*; 0 where there is none."""
    text = text_at(store, key, longest=1000)
    if text is None or text == "":
        return 0
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    put_dead_letter(store, where=key, why="it is not a count", value=text)
    return 0


def keys_like(store: JobStore, pattern: str, *, most: int = MOST_ELEMENTS) -> Iterator[str]:
    """Yield the keys that match *pattern* behind the prefix, each once."""
    seen: set[str] = set()
    for key in names_of_keys(store, store.keys.prefix, pattern):
        if key not in seen:
            seen.add(key)
            yield key
        if len(seen) >= most:
            return


def names_of_keys(store: JobStore, start: str, pattern: str = "*") -> Iterator[str]:
    """Yield the names of keys that begin with *start*, followed by *pattern*, cut; some twice.

    Those with a line break in them are left out.
    """
    escaped = re.sub(r"([*?\[\]\\^-])", r"\\\1", start)
    cursor = "0"
    while True:
        # Not SCAN itself: a name may have any length.
        cursor, names = store.scripts(
            "names", args=[cursor, escaped + pattern, 1000, LONGEST_NAME, LARGEST_READ]
        )
        yield from filter(None, names.split("\n"))
        if cursor == "0":
            return


def octets(text: str) -> bytes:
    """Return the bytes that *text* was in Redis."""
    return text.encode("utf-8", "surrogateescape")


def is_utf8(text: str) -> bool:
    """Tell whether *text* was UTF-8 in Redis."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _reply(store: JobStore, key: str, kind: str, most: int, *further: str | int) -> Any:
    longest, *scores = further or (LONGEST_VALUE,)
    return store.scripts("read", keys=[key], args=[kind, most, longest, LARGEST_READ, *scores])


def _elements(store: JobStore, key: str, kind: str, reply: Any) -> list[str]:
    found, _, elements = reply
    if found not in {kind, "none"}:
        put_dead_letter(store, where=key, why=f"it is a {found}, and should be a {kind}")
    return list(elements)


def pairs(flat: Sequence[str]) -> dict[str, str]:
    """Return what Redis returned as name, value, name, value and so on."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def put_dead_letter(
    store: JobStore, *, where: str, why: str, value: str = "", now: float | None = None
) -> None:
    """Keep a dead letter about *value*. Never raises: a reader may lack the right to write."""
    fields = {
        name: harmless(text) for name, text in (("where", where), ("why", why), ("excerpt", value))
    }
    text, moment = json.dumps(fields), time.time() if now is None else now
    # A reader that looks every second would write as often.
    if moment - store.reported.get(text, -REPEATED_AFTER) < REPEATED_AFTER:
        return
    if text not in store.reported:
        logger.warning("Redis: %s: %s", fields["where"], fields["why"])
    if len(store.reported) >= MOST_DEAD_LETTERS:
        store.reported.clear()
    store.reported[text] = moment
    try:
        pipe = store.client.pipeline(transaction=False)
        pipe.zadd(store.keys.dead_letters, {text: moment})
        pipe.zremrangebyrank(store.keys.dead_letters, 0, -MOST_DEAD_LETTERS - 1)
        pipe.execute()
    except redis.RedisError as error:
        logger.debug("a dead letter cannot be written: %s", error)


def dead_letters(store: JobStore, count: int = MOST_DEAD_LETTERS) -> list[DeadLetter]:
    """Return the newest *count* dead letters, the newest first."""
    reply = store.scripts(
        "read",
        keys=[store.keys.dead_letters],
        args=[
            "zset",
            count,
            10 * LIMIT,
            10 * LIMIT * MOST_DEAD_LETTERS,
            "-inf",
            "+inf",
            "newest",
        ],
    )
    elements = reply[2]
    found = []
    for text, score in zip(elements[::2], elements[1::2], strict=True):
        try:
            fields = json.loads(text)
            found.append(
                DeadLetter(float(score), *(str(fields[name]) for name in ("where", "why", "excerpt")))
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            found.append(
                DeadLetter(0.0, store.keys.dead_letters, "it is not a dead letter", harmless(text))
            )
    return found


def clear_dead_letters(store: JobStore) -> int:
    """Remove all dead letters; return how many there were."""
    pipe = store.client.pipeline()
    pipe.zcard(store.keys.dead_letters)
    pipe.delete(store.keys.dead_letters)
    return int(pipe.execute(raise_on_error=False)[0] or 0)


def number_of(text: str | None) -> int:
    """Return the whole number that *text* begins with, up to a dot; 0 where there is none."""
    whole = (text or "").partition(".")[0]
    return int(whole) if whole.isascii() and whole.isdigit() and len(whole) < 18 else 0
