"""The seen-set forgets nothing and invents nothing."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.seen import SeenKeys
from amicrawl.urls import UrlKey

WORD = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1), st.just(2**64 - 1))
KEYS = st.builds(UrlKey, WORD, WORD)


@given(keys=st.lists(KEYS, max_size=400), others=st.lists(KEYS, max_size=50))
def test_it_answers_as_a_set_does(keys: list[UrlKey], others: list[UrlKey]) -> None:
    seen, model = SeenKeys(), set[UrlKey]()
    for key in keys:
        assert seen.add(key) is (key not in model)
        model.add(key)
        assert len(seen) == len(model)
    for key in keys + others:
        assert (key in seen) is (key in model)


def test_a_hundred_thousand_keys_are_all_known_and_no_other() -> None:
    draw = random.Random(1).getrandbits
    keys = {UrlKey(draw(16), draw(64)) for _ in range(100_000)}
    others = {UrlKey(draw(16), draw(64)) for _ in range(20_000)} - keys
    seen = SeenKeys()
    assert all(list(map(seen.add, keys)))
    assert not any(list(map(seen.add, keys)))
    assert len(seen) == len(keys)
    assert not any(key in seen for key in others)


def test_a_key_is_not_found_across_the_border_of_two_others() -> None:
    """Keys lie one behind the other: bytes that span two of them are no key."""
    first, second = UrlKey(0x1111_1111_1111_1111, 0x2222_2222_2222_2222), UrlKey(0, 0)
    seen = SeenKeys()
    seen.add(first)
    seen.add(second)
    assert UrlKey(0x2222_2222_2222_2222, 0) not in seen
    assert UrlKey(0, 0x1111_1111_1111_1111) not in seen
    assert first in seen
    assert second in seen


def test_halves_of_a_key_are_not_interchangeable() -> None:
    seen = SeenKeys()
    seen.add(UrlKey(1, 2))
    assert UrlKey(2, 1) not in seen


def test_a_key_is_found_behind_bytes_that_only_look_like_it() -> None:
    seen = SeenKeys()
    seen.add(UrlKey(1, 0))
    seen.add(UrlKey(0, 1))
    assert UrlKey(0, 0) not in seen
    assert seen.add(UrlKey(0, 0))
    assert UrlKey(0, 0) in seen
    assert not seen.add(UrlKey(0, 0))
