"""The counters by domain and year of cdx-summarize, its oddities included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from report.summary_lines import DIGEST, cdx11
from typer.testing import CliRunner

from amicrawl.archive.report.years import (
    CATEGORIES,
    FIELDS,
    Years,
    category_of,
    folded,
    format_of,
    read_years,
    shared_years,
)
from amicrawl.cli import app
from amicrawl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Summarised = Callable[..., dict[str, Any]]

LEGEND = " CDX N b a m s k r M S V g"


def cdxj(key: str = "com,example)/", time: str = "20121026215942", **fields: object) -> str:
    whole = {
        "url": "http://example.com/",
        "mime": "text/html",
        "status": "200",
        "length": "100",
    } | fields
    known = {name: value for name, value in whole.items() if value is not None}
    return f"{key} {time} {json.dumps(known | {'filename': 'f'})}"


@pytest.fixture
def summarised(tmp_path: Path) -> Summarised:
    def run(*lines: str, **options: Any) -> dict[str, Any]:
        path = tmp_path / "index"
        path.write_text("".join(f"{line}\n" for line in lines))
        read = read_years([str(path)], **options)
        return {
            key: json.loads(text)
            for key, _, text in (line.partition(" ") for line in read.years.lines(compact=True))
        }

    return run


def test_fields_have_their_order_and_zeros_are_shown_unless_requested() -> None:
    years = Years()
    years.add("example.com", "2012", "html", scheme="http", size=7)

    (line,) = years.lines()
    fields = json.loads(line.removeprefix("example.com "))["2012"]
    assert list(fields) == list(FIELDS) == [f"{kind}_{name}" for kind in "ns" for name in CATEGORIES]
    assert {name: value for name, value in fields.items() if value} == {
        "n_html": 1,
        "n_http": 1,
        "n_total": 1,
        "s_html": 7,
        "s_http": 7,
        "s_total": 7,
    }


@pytest.mark.parametrize(
    ("mime", "category"),
    [
        ("text/html", "html"),
        ("application/xhtml+xml", "html"),
        ("text/plain", "html"),
        ("Text/Html", "other"),
        ("application/x-javascript", "js"),
        ("text/javascript", "js"),
        ("application/font-woff", "font"),
        ("application/vnd.ms-fontobject", "font"),
        ("application/x-font-ttf", "font"),
        ("image/svg+xml", "image"),
        ("application/pdf", "pdf"),
        ("text/json", "json"),
        ("application/ld+json", "other"),
        ("-", "other"),
    ],
)
def test_media_types_have_their_categories(mime: str, category: str) -> None:
    assert category_of(mime) == category


def test_only_good_responses_count_but_a_cdxj_line_without_status_is_other(
    summarised: Summarised,
) -> None:
    lines = [
        cdxj(),
        cdxj(status="404"),
        cdxj(status=None),
        cdxj(mime="application/warc-fields"),
        cdxj(status=200),
    ]

    assert summarised(*lines)["example.com"]["2012"] == {
        "n_html": 1,
        "n_other": 1,
        "n_http": 2,
        "n_total": 2,
        "s_html": 100,
        "s_other": 100,
        "s_http": 200,
        "s_total": 200,
    }


def test_a_status_that_is_a_number_is_skipped_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_text(cdxj() + "\n" + cdxj(status=200) + "\n")

    assert read_years([str(path)]).skipped == {"a status that is not a string": 1}


def test_the_same_revisit_in_cdx11_does_not_count(summarised: Summarised) -> None:
    assert (
        summarised(LEGEND, cdx11(), cdx11(status="-", mime="warc/revisit"))["example.com"]["2012"][
            "n_total"
        ]
        == 1
    )


def test_domains_are_the_last_two_labels_and_hosts_lose_their_port(summarised: Summarised) -> None:
    lines = [
        cdxj(key="uk,co,bbc,news:8080)/"),
        cdxj(key="com,example:8080)/"),
        cdxj(key="com)/"),
        cdxj(key="dns:a.org"),
    ]

    assert list(summarised(*lines)) == ["", "co.uk", "example.com"]
    assert list(summarised(*lines, full_host=True)) == ["com", "dns", "example.com", "news.bbc.co.uk"]


def test_seven_columns_have_sizes_and_ten_have_none(summarised: Summarised) -> None:
    seven = f"com,example)/ 20121026215942 https://example.com/ text/html 200 {DIGEST} 55"
    ten = f"example.com/ 20121026215942 http://example.com/ text/html 200 {DIGEST} - - 771 a.arc.gz"

    assert summarised(seven)["example.com"]["2012"]["s_https"] == 55
    assert summarised(ten)["example.com"]["2012"] == {"n_html": 1, "n_http": 1, "n_total": 1}


def test_eleven_columns_without_legend_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_text(cdx11() + "\n")

    assert format_of(cdx11()) is None
    with pytest.raises(InputError, match="in no format that cdx-summarize reads"):
        read_years([str(path)])


def test_months_can_be_told_apart(summarised: Summarised) -> None:
    assert list(summarised(cdxj(), cdxj(time="20121101000000"), monthly=True)["example.com"]) == [
        "201210",
        "201211",
    ]


def test_summaries_of_parts_add_up_and_hosts_can_be_folded(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path, time in ((first, "20121026215942"), (second, "20131026215942")):
        raw = tmp_path / "raw"
        raw.write_text(
            cdxj(key="uk,co,bbc,news)/", time=time) + "\n" + cdxj(key="uk,co,bbc)/", time=time) + "\n"
        )
        path.write_text("\n".join(read_years([str(raw)], full_host=True).years.lines()) + "\n")
    both = [str(first), str(second)]

    assert list(read_years(both).years.totals()) == [
        "bbc.co.uk 2012 1 100",
        "bbc.co.uk 2013 1 100",
        "news.bbc.co.uk 2012 1 100",
        "news.bbc.co.uk 2013 1 100",
    ]
    assert list(read_years(both, fold=folded("psl")).years.totals()) == [
        "bbc.co.uk 2012 2 200",
        "bbc.co.uk 2013 2 200",
    ]
    assert next(read_years(both, fold=folded("lvl2")).years.totals()) == "co.uk 2012 2 200"


@pytest.mark.parametrize(
    "said",
    [
        '{"2012": {"n_html": Infinity}}',
        '{"20\\ud800": {"n_html": 1}}',
        '{"2012": {"n_html": 1, "x": 2}}',
    ],
)
def test_a_line_of_a_summary_that_is_none_is_skipped_as_a_whole(said: str, tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text(f'a.example {{"2012": {{"n_total": 1}}}}\nb.example {said}\n')
    read = read_years([str(path)])
    assert [line.split()[0] for line in read.years.totals()] == ["a.example"]
    assert len(list(read.years.lines())) == 1
    assert read.skipped == {"not a line of a summary by year": 1}


def test_the_csv_has_its_fields_in_the_alphabet() -> None:
    years = Years()
    years.add("example.com", "2012", "video", scheme="https", size=7)

    header, row = years.csv()
    assert header.split()[:3] == ["domainname", "year", "n_audio"]
    assert header.split()[-1] == "s_video"
    assert row.split()[-1] == "7"


def test_archives_share_what_both_hold_of_a_domain_in_a_year() -> None:
    first, second = Years(), Years()
    for years, names in ((first, "ab"), (second, "bc")):
        for name in names:
            years.add(name, "2012", "html", scheme="http", size=10)

    assert shared_years({"A": first, "B": second}) == {
        "A": [1, 1, 10],
        "A AND B": [1, 1, 10, 1, 10],
        "B": [1, 1, 10],
    }


def test_the_command_tells_what_archives_share(tmp_path: Path) -> None:
    line = "com,{}) 20120101000000 http://{}.com/ text/html 200 DIGEST - - 10 0 a.warc.gz"
    for name, hosts in (("first", "ab"), ("second", "bc")):
        lines = [" CDX N b a m s k r M S V g", *(line.format(host, host) for host in hosts)]
        (tmp_path / f"{name}.cdx").write_text("\n".join(lines) + "\n")
    paths = [str(tmp_path / f"{name}.cdx") for name in ("first", "second")]
    command = ["summary", "--compat", "cdx-summarize", *paths, "--show"]

    told, blocks = (CliRunner().invoke(app, [*command, form]) for form in ("overlap", "overlap-csv"))

    assert (told.exit_code, blocks.exit_code) == (0, 0)
    assert json.loads(told.stdout) == {
        "first": [1, 1, 10],
        "first AND second": [1, 1, 10, 1, 10],
        "second": [1, 1, 10],
    }
    assert blocks.stdout.split("\n\n")[1].splitlines() == [
        "Count of URLs",
        "first,1",
        "first AND second,1,1",
        "second,1",
    ]
