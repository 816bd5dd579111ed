"""What is said of a value that a setting or an option cannot have: what it must be, in plain words."""

from __future__ import annotations

import pytest

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.errors import UsageError


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("DELAY", "-1", "it must be 0 or more"),
        ("DELAY", "soon", "it must be a number"),
        ("PER_HOST", "x", "it must be a whole number"),
        ("MAX_HOPS", "1.5", "it must be a whole number"),
        ("MAX_REQUISITE_HOPS", "51", "it must be 50 or less"),
        ("WARC_SIZE", "3zz", "it must be a number of bytes or a size, such as 64MiB"),
        ("WARC_SIZE", "1KB", "it must be 1024 or more"),
        ("REQUISITES", "perhaps", "it must be true or false"),
        ("ROBOTS", "maybe", "it must be 'obey', 'obey-but-fetch-requisites' or 'ignore'"),
        ("RUN_ID", "a/b", "it must match ^[A-Za-z0-9]"),
        ("WARC_PREFIX", "/x", "it must be letters, digits, "),
        ("ALLOW_PRIVATE", "300.1", "'300.1' does not appear to be an IPv4 or IPv6 network"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_what_it_must_be(
    setting: str, value: str, wanted: str
) -> None:
    with pytest.raises(UsageError) as refused:
        CrawlConfig.from_settings({PREFIX + setting: value})
    assert str(refused.value).startswith(f"Setting {PREFIX}{setting} is {value!r}: {wanted}")
    assert "Input" not in str(refused.value)
