"""What holds for every test."""

import signal

import pytest
from hypothesis import settings

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C. Some
# tests interrupt what they have started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more of the machine's other work than of the code.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name packed parameters alike in every process: gzip puts the time into what it packs."""
    return "gzip" if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--roads", action="store_true", help="run every crawl test of tests/crawl by both roads"
    )
