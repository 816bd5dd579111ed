"""When a payload is stored, and when a pointer to an earlier record is enough."""

from __future__ import annotations

import gzip
import hashlib
import time

import pytest
from record.exchanges import CONDITIONAL_REQUEST, NOT_MODIFIED, capture

from amicrawl.capture import Truncation
from amicrawl.record.deduplication import (
    Original,
    Originals,
    Profile,
    RevisitDecision,
    decide,
    digests_of,
    labelled,
    may_be_original,
)
from amicrawl.seed import Seed

BODY = b"<p>same</p>"
DIGEST = hashlib.sha1(BODY).hexdigest()
EMPTY = hashlib.sha1(b"").hexdigest()
URL = "http://example.org/"
KNOWING = Seed(URL, digest=DIGEST, etag='"v1"', captured_at=1767225600000)


def test_a_payload_that_nobody_knows_is_stored() -> None:
    made = capture(body=BODY)
    assert decide(made, digests_of(made), seed=Seed(URL)) == RevisitDecision(DIGEST, unchanged=False)


def test_the_payload_that_the_seed_knows_becomes_a_revisit() -> None:
    made = capture(body=BODY)
    original = Original(URL, 1767225600000, labelled(bytes.fromhex(DIGEST)))
    assert decide(made, digests_of(made), seed=KNOWING) == RevisitDecision(
        DIGEST, unchanged=True, profile=Profile.IDENTICAL, original=original
    )


def test_the_payload_counts_and_not_its_chunks() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    made = capture(head=head, body=b"b\r\n" + BODY + b"\r\n0\r\n\r\n")
    assert decide(made, digests_of(made), seed=KNOWING).profile is Profile.IDENTICAL


@pytest.mark.parametrize(
    "label", ["sha1:" + "A" * 31, "sha1:" + "A" * 32 + "\r\nWARC-Type: response", "x"]
)
def test_what_is_not_a_payload_digest_is_not_repeated(label: str) -> None:
    """A seed may come from a table, a frontier or Redis: what it says could forge a field."""
    made = capture(body=BODY)
    decided = decide(made, digests_of(made), seed=KNOWING._replace(payload_digest=label))
    assert decided.original is not None
    assert decided.original.payload_digest == labelled(bytes.fromhex(DIGEST))


CODED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"


def test_the_payload_that_the_seed_knows_without_its_content_coding_is_unchanged_and_stored() -> None:
    body = gzip.compress(BODY)
    made = capture(head=CODED, body=body)
    stored = RevisitDecision(hashlib.sha1(body).hexdigest(), unchanged=True)
    assert decide(made, digests_of(made), seed=KNOWING) == stored
    other = capture(head=CODED, body=gzip.compress(b"other"))
    assert not decide(other, digests_of(other), seed=KNOWING).unchanged
    cut = capture(head=CODED, body=body, truncated=Truncation.LENGTH)
    assert not decide(cut, digests_of(cut), seed=KNOWING).unchanged


def test_all_fields_that_name_content_codings_count() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n"
    made = capture(head=head, body=gzip.compress(gzip.compress(BODY)))
    assert decide(made, digests_of(made), seed=KNOWING).unchanged


@pytest.mark.parametrize(("size", "unchanged"), [(8 * 1024**2, True), (8 * 1024**2 + 1, False)])
def test_a_payload_that_unpacks_to_more_than_8_mib_is_not_compared(size: int, unchanged: bool) -> None:
    vast = bytes(size)
    made = capture(head=CODED, body=gzip.compress(vast))
    knowing = Seed(URL, digest=hashlib.sha1(vast).hexdigest())
    assert decide(made, digests_of(made), seed=knowing).unchanged is unchanged


def test_a_304_to_a_conditional_request_carries_the_digest_forward() -> None:
    made = capture(head=NOT_MODIFIED, status=304, body=b"", request=CONDITIONAL_REQUEST)
    decision = decide(made, digests_of(made), seed=KNOWING)
    assert (decision.profile, decision.unchanged, decision.digest) == (
        Profile.NOT_MODIFIED,
        True,
        DIGEST,
    )


def test_a_304_that_nobody_requested_is_an_ordinary_response() -> None:
    made = capture(head=NOT_MODIFIED, status=304, body=b"")
    assert decide(made, digests_of(made), seed=KNOWING) == RevisitDecision(EMPTY, unchanged=False)


@pytest.mark.parametrize(
    ("seed", "profile"),
    [
        (KNOWING, Profile.NOT_MODIFIED),
        (Seed(URL, last_modified="Thu, 01 Jan 2026 12:00:00 GMT"), Profile.NOT_MODIFIED),
        (Seed(URL), None),
    ],
)
def test_where_the_request_is_not_known_the_seed_tells_whether_it_was_conditional(
    seed: Seed, profile: Profile | None
) -> None:
    made = capture(head=NOT_MODIFIED, status=304, body=b"", request=b"")
    assert decide(made, digests_of(made), seed=seed).profile is profile


def test_store_unchanged_stores_the_payload_and_still_says_unchanged() -> None:
    made = capture(body=BODY)
    decision = decide(made, digests_of(made), seed=KNOWING, store_unchanged=True)
    assert decision == RevisitDecision(DIGEST, unchanged=True)


def test_a_304_is_a_revisit_even_where_payloads_are_stored_again() -> None:
    made = capture(head=NOT_MODIFIED, status=304, body=b"", request=CONDITIONAL_REQUEST)
    decision = decide(made, digests_of(made), seed=KNOWING, store_unchanged=True)
    assert decision.profile is Profile.NOT_MODIFIED


def test_a_payload_of_this_crawl_becomes_a_revisit_that_is_not_called_unchanged() -> None:
    stored = Originals()
    original = Original("http://other.example/", 5, "sha1:X", "<urn:uuid:1>")
    stored.add(DIGEST, original)
    made = capture(body=BODY)
    decision = decide(made, digests_of(made), seed=Seed(URL), stored=stored)
    assert decision == RevisitDecision(
        DIGEST, unchanged=False, profile=Profile.IDENTICAL, original=original
    )


@pytest.mark.parametrize("truncated", list(Truncation))
def test_a_truncated_payload_is_stored_and_never_an_original(truncated: Truncation) -> None:
    made = capture(body=BODY, truncated=truncated)
    stored = Originals()
    stored.add(DIGEST, Original(URL))
    decision = decide(made, digests_of(made), seed=KNOWING, stored=stored)
    assert decision.profile is None
    assert not may_be_original(made, digests_of(made), decision=decision)


def test_an_empty_payload_is_stored_and_never_an_original() -> None:
    made = capture(body=b"")
    stored = Originals()
    stored.add(EMPTY, Original(URL))
    decision = decide(made, digests_of(made), seed=Seed(URL, digest=EMPTY), stored=stored)
    assert decision == RevisitDecision(EMPTY, unchanged=True)
    assert not may_be_original(made, digests_of(made), decision=decision)


def test_a_payload_of_one_byte_may_be_an_original() -> None:
    made = capture(body=b"0")
    decision = decide(made, digests_of(made), seed=Seed(URL))
    assert may_be_original(made, digests_of(made), decision=decision)


def test_a_revisit_is_never_an_original() -> None:
    made = capture(body=BODY)
    decision = decide(made, digests_of(made), seed=KNOWING)
    assert not may_be_original(made, digests_of(made), decision=decision)
    assert may_be_original(made, digests_of(made), decision=RevisitDecision(DIGEST, unchanged=False))


YEAR_10000 = 253_402_300_800_000


@pytest.mark.parametrize(
    ("captured_at", "said"),
    [(-1, 0), (0, 0), (1, 1), (YEAR_10000 - 1, YEAR_10000 - 1), (YEAR_10000, 0), (10**15, 0)],
)
def test_a_date_that_cannot_be_said_is_left_out(captured_at: int, said: int) -> None:
    made = capture(body=BODY)
    decision = decide(made, digests_of(made), seed=Seed(URL, digest=DIGEST, captured_at=captured_at))
    assert decision.original is not None
    assert decision.original.captured_at == said


@pytest.mark.parametrize("digest", ["xyz", "ab", "g" * 40])
def test_a_seed_digest_that_is_none_gives_no_label(digest: str) -> None:
    made = capture(head=NOT_MODIFIED, status=304, body=b"", request=CONDITIONAL_REQUEST)
    decision = decide(made, digests_of(made), seed=Seed(URL, digest=digest))
    assert decision.original == Original(URL)


def test_of_too_many_originals_the_longest_unused_is_forgotten() -> None:
    originals = Originals(limit=2)
    for digest in ("a", "b"):
        originals.add(digest, Original(digest))
    assert originals.get("a") == Original("a")
    originals.add("c", Original("c"))
    assert originals.get("b") is None
    assert originals.get("a") == Original("a")
    assert len(originals) == 2


def test_to_forget_one_of_many_originals_takes_no_longer_than_to_remember_one() -> None:
    originals = Originals()

    def seconds(first: int) -> float:
        began = time.process_time()
        for number in range(first, first + 100_000):
            originals.add(str(number), Original(""))
        return time.process_time() - began

    remembered = seconds(0)
    assert seconds(100_000) < 10 * max(remembered, 0.05)


def test_an_original_that_is_stored_again_counts_as_used() -> None:
    originals = Originals(limit=2)
    for digest in ("a", "b", "a", "c"):
        originals.add(digest, Original(digest))
    assert originals.get("b") is None
    assert originals.get("a") == Original("a")
