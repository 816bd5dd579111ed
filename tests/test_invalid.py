"""What is said of a value that a setting or an option cannot have: what it must be, in plain words."""

from __future__ import annotations

import pytest

from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawl.host_overrides import HostOverrides
from amicrawl.errors import UsageError
from amicrawl.urls import UrlKey


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("DELAY", "-1", "it must be 0 or more"),
        ("DELAY", "soon", "it must be a number"),
        ("PER_HOST", "x", "it must be a whole number"),
        ("INFLIGHT_MAX", "²", "it must be a whole number"),
        ("MAX_HOPS", "1.5", "it must be a whole number"),
        ("MAX_REQUISITE_HOPS", "51", "it must be 50 or less"),
        ("WARC_SIZE", "3zz", "it must be a number of bytes or a size, such as 64MiB"),
        ("WARC_SIZE", "1KB", "it must be 1024 or more"),
        ("REQUISITES", "perhaps", "it must be true or false"),
        ("ROBOTS", "maybe", "it must be 'obey', 'obey-but-fetch-requisites' or 'ignore'"),
        ("RUN_ID", "a/b", "it must match ^[A-Za-z0-9]"),
        ("WARC_PREFIX", "/x", "it must be letters, digits, "),
        ("HOST_OVERRIDES", "{'a.org': {'delay': 1}}", "it must be a table"),
        ("RECRAWL_AFTER", "{'*': '1d'}", "it must be a table"),
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


NUMBERS = [
    field.upper()
    for field, about in CrawlConfig.model_fields.items()
    if about.annotation is not bool
    and any(kind in str(about.annotation) for kind in ("int", "float", "ByteSize"))
]


@pytest.mark.parametrize("setting", NUMBERS)
@pytest.mark.parametrize("value", ["inf", "1e400", "nan", "9" * 23])
def test_no_number_of_a_setting_is_beyond_what_files_and_clocks_have_room_for(
    setting: str, value: str
) -> None:
    with pytest.raises(UsageError, match=f"^Setting {PREFIX}{setting} is {value!r}: it must be "):
        CrawlConfig.from_settings({PREFIX + setting: value})


@pytest.mark.parametrize("override", [{"delay": "1e300"}, {"per_host": "9" * 23}])
def test_no_number_of_a_single_host_is_either(override: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="that cannot be followed"):
        HostOverrides({"a.example": override}, key_of=lambda _: UrlKey(0, 0))


def test_a_command_line_can_say_what_holds_for_a_host_and_which_networks_are_allowed() -> None:
    given = {
        "HOST_OVERRIDES": '{"example.org": {"delay": 5}}',
        "ALLOW_PRIVATE": "127.0.0.0/8 10.0.0.0/8, ::1/128",
    }
    config = CrawlConfig.from_settings({PREFIX + name: value for name, value in given.items()})
    assert config.host_overrides == {"example.org": {"delay": 5}}
    assert [str(network) for network in config.allow_private] == ["127.0.0.0/8", "10.0.0.0/8", "::1/128"]
