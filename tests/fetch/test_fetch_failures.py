"""Why there is no connection."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.capture import Failure
from amicrawl.fetch.failures import failure_of, one_line, sentence_of


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.ECONNREFUSED, Failure.CONNECTION_REFUSED),
        (errno.EHOSTUNREACH, Failure.NO_ROUTE),
        (errno.ENETUNREACH, Failure.NO_ROUTE),
        (errno.EADDRNOTAVAIL, Failure.NO_ROUTE),
        (errno.ETIMEDOUT, Failure.CONNECT_TIMEOUT),
        (errno.ECONNRESET, Failure.CONNECTION_RESET),
        (errno.EMFILE, Failure.ENDED_HERE),
        (errno.EPERM, Failure.OTHER),
    ],
)
def test_a_connection_that_was_not_made_is_named_by_the_systems_error(
    number: int, failure: Failure
) -> None:
    error = OSError(number, "event loops write here what they like")
    assert failure_of(error) is failure
    assert "event loops" not in sentence_of(error)


@pytest.mark.parametrize("number", [errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH])
def test_a_broken_connection_to_a_proxy_is_the_proxys(number: int) -> None:
    assert failure_of(OSError(number, ""), proxied=True) is Failure.PROXY


def test_no_free_descriptor_is_no_fault_of_a_proxy() -> None:
    assert failure_of(OSError(errno.EMFILE, ""), proxied=True) is Failure.ENDED_HERE


@given(text=st.text(max_size=2000))
def test_untrusted_text_becomes_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert len(line) <= 300
    assert line.isprintable()
    assert line == line.strip()


def test_a_long_text_is_cut_and_says_so() -> None:
    assert one_line("a " * 1000).endswith("\u2026")
    assert one_line("a\r\n\x1b[31mb") == "a [31mb"
