"""Why no connection came about."""

from __future__ import annotations

import errno

import pycurl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.capture import Failure
from amicrawl.fetch.failures import failure_of, one_line


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (pycurl.E_URL_MALFORMAT, Failure.UNFETCHABLE_URL),
        (pycurl.E_COULDNT_RESOLVE_HOST, Failure.NAME_NOT_FOUND),
        (pycurl.E_COULDNT_CONNECT, Failure.CONNECTION_REFUSED),
        (pycurl.E_OPERATION_TIMEDOUT, Failure.CONNECT_TIMEOUT),
        (pycurl.E_SSL_CONNECT_ERROR, Failure.TLS_HANDSHAKE),
        (pycurl.E_PEER_FAILED_VERIFICATION, Failure.TLS_CERTIFICATE),
        (pycurl.E_COULDNT_RESOLVE_PROXY, Failure.PROXY),
        (97, Failure.PROXY),
        (pycurl.E_RECV_ERROR, Failure.CONNECTION_RESET),
        (pycurl.E_OUT_OF_MEMORY, Failure.OTHER),
        (12345, Failure.OTHER),
    ],
)
def test_each_code_of_libcurl_has_a_word(code: int, failure: Failure) -> None:
    assert failure_of(code) is failure


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.ECONNREFUSED, Failure.CONNECTION_REFUSED),
        (errno.EHOSTUNREACH, Failure.NO_ROUTE),
        (errno.ENETUNREACH, Failure.NO_ROUTE),
        (errno.ETIMEDOUT, Failure.CONNECT_TIMEOUT),
    ],
)
def test_a_connection_that_was_not_made_is_told_by_the_systems_error(
    number: int, failure: Failure
) -> None:
    assert failure_of(pycurl.E_COULDNT_CONNECT, os_errno=number) is failure


@pytest.mark.parametrize("code", [pycurl.E_COULDNT_CONNECT, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR])
def test_a_broken_connection_to_a_proxy_is_the_proxys(code: int) -> None:
    assert failure_of(code, proxied=True) is Failure.PROXY


@given(text=st.text(max_size=2000))
def test_untrusted_text_becomes_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert len(line) <= 300
    assert line.isprintable()
    assert line == line.strip()


def test_a_long_text_is_cut_and_says_so() -> None:
    assert one_line("a " * 1000).endswith("\u2026")
    assert one_line("a\r\n\x1b[31mb") == "a [31mb"
