"""What a row has no column for, as JSON behind its strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from frontier.live.disks import CountingDisk
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Found, Hop, Offer, Source, extended, hops_of, is_route
from amicrawl.frontier.row_strings import Offered, found, found_entries, offered, offered_entries
from amicrawl.meguri.arena import StringArena, entry_of
from amicrawl.meguri.format.strings import ANNEX_MARK
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey, text_of

if TYPE_CHECKING:
    from pathlib import Path

# What was read as octets: lone surrogates stand for those that are not UTF-8.
OCTETS = st.binary(max_size=40).map(text_of)
TEXTS = st.one_of(OCTETS, st.text(max_size=20))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
SEEDS = st.builds(
    Seed,
    OCTETS,
    digest=TEXTS,
    etag=TEXTS,
    last_modified=TEXTS,
    captured_at=st.integers(0, 2**63),
    meta_json=TEXTS,
    original_url=TEXTS,
    payload_digest=TEXTS,
)

ROUTES = st.from_regex(r"[LERM]{0,50}|[1-9]\+[LERM]{50}", fullmatch=True)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("annexes")


def read_back(directory: Path, entries: bytes, *, behind: bytes = b"") -> tuple[bytes, bytes]:
    """Return what the arena gives for *entries* when it has others before and *behind* them."""
    arena = StringArena(directory=directory, disk=CountingDisk())
    arena.append(entry_of(b"http://before.test/"))
    at = arena.append(entries)
    if behind:
        arena.append(behind)
    texts = arena.texts_at(at)
    arena.close()
    return texts


def offer(seed: Seed, extra: dict[str, Any] | None = None) -> Offer:
    return Offer(seed, UrlKey(1, 2), Source.SEED, extra=extra)


@pytest.mark.slow
@given(seed=SEEDS, extra=st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=3))
def test_an_offer_comes_back_from_the_arena(directory: Path, seed: Seed, extra: dict[str, Any]) -> None:
    next_url = entry_of(b"http://behind.test/")
    entries = offered_entries(offer(seed, extra))
    assert offered(*read_back(directory, entries, behind=next_url)) == Offered(seed, extra)
    assert offered(*read_back(directory, entries)) == Offered(seed, extra)


@pytest.mark.slow
@given(
    seed=st.one_of(st.builds(Seed, OCTETS), SEEDS),
    via=OCTETS,
    shared=st.integers(0, 9),
    route=ROUTES,
    extra=st.sampled_from([None, {"a": 1}]),
)
def test_where_a_url_was_found_comes_back_from_the_arena(
    directory: Path, seed: Seed, via: str, shared: int, route: str, extra: dict[str, Any] | None
) -> None:
    host = "http://h.test/a/b.html"
    via = host[: 2 * shared] + "/" + via
    seed = seed._replace(url=host[:shared] + "/" + seed.url)
    entries = offered_entries(offer(seed, extra)._replace(via=via, route=route))
    assert offered(*read_back(directory, entries)) == Offered(seed, extra, via, route)


def test_of_a_neighbour_only_the_file_name_is_written() -> None:
    first = "https://docs.example.org/library/functions/index.html"
    entries = offered_entries(
        offer(Seed("https://docs.example.org/library/functions/abs.html"))._replace(
            via=first, route="LL"
        )
    )
    assert entries.endswith(b'{"v":[43,"index.html"],"h":"LL"}')


def test_a_long_route_keeps_its_last_hops_and_the_number_of_the_others() -> None:
    route = ""
    for hop in [Hop.LINK] * 60 + [Hop.REQUISITE]:
        route = extended(route, hop)
    assert route == "11+" + "L" * 49 + "E"
    assert is_route(route)
    assert hops_of(route) == 61
    assert hops_of("LLE") == 3
    assert [text for text in ("", "L", "LX", "1+L", "0+" + "L" * 50, None) if is_route(text)] == [
        "",
        "L",
    ]


@given(
    st.builds(
        Found,
        digest=TEXTS,
        etag=OCTETS,
        last_modified=TEXTS,
        captured_at=st.integers(0, 2**63),
        original_url=TEXTS,
        payload_digest=TEXTS,
        unchanged=st.just(False),
    )
)
def test_what_was_found_comes_back_from_the_arena(directory: Path, what: Found) -> None:
    entries = found_entries(what)
    assert found(*read_back(directory, entries, behind=entry_of(b'"another"'))) == what


@given(OCTETS)
def test_a_url_of_which_nothing_more_is_known_has_no_annex(url: str) -> None:
    assert offered_entries(offer(Seed(url))) == entry_of(url.encode("utf-8", "surrogateescape"))
    assert offered_entries(offer(Seed(url), {})) == offered_entries(offer(Seed(url)))


@given(OCTETS.filter(bool))
def test_the_string_of_the_next_row_is_no_annex(behind: str) -> None:
    octets = behind.encode("utf-8", "surrogateescape")
    if not octets.startswith(ANNEX_MARK):
        assert offered(b"http://a.test/", octets) == Offered(Seed("http://a.test/"))


@pytest.mark.parametrize(
    "annex",
    [
        ANNEX_MARK,
        ANNEX_MARK + b"{",
        ANNEX_MARK + b"[]",
        ANNEX_MARK + b"\xff",
        ANNEX_MARK + b"null",
        ANNEX_MARK + b'{"d":1,"e":[],"m":null,"t":"x","u":{},"j":true,"x":[]}',
        ANNEX_MARK + b'{"t":true}',
        ANNEX_MARK + b'{"v":[99,"x"],"h":"LL\\n"}',
        ANNEX_MARK + b'{"v":[-1,"x"],"h":7}',
        ANNEX_MARK + b'{"v":["x",1],"h":"1+L"}',
        ANNEX_MARK + b'{"t":1.5}',
        ANNEX_MARK + b"[" * 100_000,
        ANNEX_MARK + b'{"t":' + b"9" * 10_000 + b"}",
    ],
)
def test_of_an_annex_that_is_none_nothing_is_believed(annex: bytes) -> None:
    assert offered(b"http://a.test/", annex) == Offered(Seed("http://a.test/"))
    assert found(b'"tag"', annex) == Found(etag='"tag"')


@pytest.mark.parametrize("extra", [{"a": object()}, {"a": {1, 2}}, {(1, 2): 3}])
def test_what_json_cannot_say_is_refused(extra: dict[Any, Any]) -> None:
    with pytest.raises(AmicrawlError, match="cannot be kept in the frontier"):
        offered_entries(offer(Seed("http://a.test/"), extra))


def test_what_contains_itself_is_refused() -> None:
    extra: dict[str, Any] = {}
    extra["a"] = extra
    with pytest.raises(AmicrawlError, match="cannot be kept in the frontier"):
        offered_entries(offer(Seed("http://a.test/"), extra))


def test_what_is_nested_without_end_is_refused() -> None:
    extra: dict[str, Any] = {}
    for _ in range(100_000):
        extra = {"a": extra}
    with pytest.raises(AmicrawlError, match="cannot be kept in the frontier"):
        offered_entries(offer(Seed("http://a.test/"), extra))
