"""Which shard a host belongs to, for crawls that share the work without sharing anything else.

Hosts are dealt out, not URLs, so that a host is contacted by one process only. The rule is jump
consistent hashing (Lamping and Veach, 2014), which a partition map uses too: of n + 1 shards, the new
one takes its part from all the others and nothing moves between those, so that a crawl continued on one
more machine contacts few hosts twice. Changing it would tear running crawls apart: its values are
pinned.

Where the hosts are few, or some have most of the URLs, chance divides the work badly: of six hosts one
of two shards may have five. With a salt it is another rule of the same kind, and of some dozens one
divides known hosts evenly.
"""

from __future__ import annotations

_MULTIPLIER = 2862933555777941757
_MASK = 0xFFFF_FFFF_FFFF_FFFF


def shard_of(host: int, shards: int, salt: int = 0) -> int:
    """Return the shard, from 0, of the host key *host* among *shards*; 0 for fewer than two.

    With another *salt* hosts are dealt out otherwise.
    """
    shard, following = 0, 0
    host ^= salt
    while following < shards:
        shard = following
        host = (host * _MULTIPLIER + 1) & _MASK
        following = int((shard + 1) * (2**31 / ((host >> 33) + 1)))
    return shard
