"""Redis: the connection, the keys, the scripts, and bounded readers of what others may have written.

Begin with `keys.py`, which lists every key. All that talks to Redis does so through a `JobStore`
(`connection.py`), which a script of `scripts` changes in one step. Values that cannot be used become
dead letters (`redis_values.py`). Keys of jobs have their idents, and idents follow from URLs
(`ident.py`).
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.fleet.database.connection import (
        JobStore,
        RedisRefused,
        RedisSettings,
        RedisUnavailable,
        connect,
        connect_from_scrapy,
    )
    from amicrawl.fleet.database.ident import (
        base_name,
        checked_ident,
        ident_of,
        is_ident,
        normalised,
        slug_of,
    )
    from amicrawl.fleet.database.keys import (
        PENDING,
        PENDING_LARGE,
        PENDING_SHALLOW,
        TAGGED,
        ShareKeys,
        unit_of,
    )
    from amicrawl.fleet.database.redis_values import (
        LARGEST_READ,
        clear_dead_letters,
        count_at,
        dead_letters,
        fault_at,
        hash_at,
        hashes_at,
        is_utf8,
        keys_like,
        list_at,
        names_of_keys,
        number_of,
        octets,
        pairs,
        put_dead_letter,
        scored_at,
        set_at,
        text_at,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        JobStore="connection",
        RedisRefused="connection",
        RedisSettings="connection",
        RedisUnavailable="connection",
        connect="connection",
        connect_from_scrapy="connection",
        base_name="ident",
        checked_ident="ident",
        ident_of="ident",
        is_ident="ident",
        normalised="ident",
        slug_of="ident",
        PENDING="keys",
        PENDING_LARGE="keys",
        PENDING_SHALLOW="keys",
        ShareKeys="keys",
        TAGGED="keys",
        unit_of="keys",
        LARGEST_READ="redis_values",
        clear_dead_letters="redis_values",
        count_at="redis_values",
        dead_letters="redis_values",
        fault_at="redis_values",
        hash_at="redis_values",
        hashes_at="redis_values",
        is_utf8="redis_values",
        keys_like="redis_values",
        list_at="redis_values",
        names_of_keys="redis_values",
        number_of="redis_values",
        octets="redis_values",
        pairs="redis_values",
        put_dead_letter="redis_values",
        scored_at="redis_values",
        set_at="redis_values",
        text_at="redis_values",
    )

__all__ = [
    "LARGEST_READ",
    "PENDING",
    "PENDING_LARGE",
    "PENDING_SHALLOW",
    "TAGGED",
    "JobStore",
    "RedisRefused",
    "RedisSettings",
    "RedisUnavailable",
    "ShareKeys",
    "base_name",
    "checked_ident",
    "clear_dead_letters",
    "connect",
    "connect_from_scrapy",
    "count_at",
    "dead_letters",
    "fault_at",
    "hash_at",
    "hashes_at",
    "ident_of",
    "is_ident",
    "is_utf8",
    "keys_like",
    "list_at",
    "names_of_keys",
    "normalised",
    "number_of",
    "octets",
    "pairs",
    "put_dead_letter",
    "scored_at",
    "set_at",
    "slug_of",
    "text_at",
    "unit_of",
]
