"""Redis: the connection, the keys, the scripts, and bounded readers of what others may have written.

Begin with `keys.py`, which lists every key. All that talks to Redis does so through a `JobStore`
(`connection.py`), which a script of `scripts` changes in one step. Values that cannot be used become
dead letters (`redis_values.py`). Keys of jobs have their idents, and idents follow from URLs
(`ident.py`).
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
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
    __getattr__, __all__ = lazy_exports(__spec__)
