"""What a crawl could not keep: counted, joined, and put into sentences."""

from __future__ import annotations

import re
from shlex import split

import pytest
from record.exchanges import HEAD, capture, failed, item

from amicrawl.record import Provenance, Unkept, joined_unkept, unkept_sentences
from amicrawl.record.unkept import expression_of, shape_of

NEEDED = Provenance("http://h/page", "requisite", 2, "LE")


def said(unkept: object) -> list[str]:
    return list(unkept_sentences(unkept, "out"))


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("http://h/cal/day?d=2036-01-02", "h/cal/day?d=*"),
        ("https://h.example:8080/2031/7/a1b22.html", "h.example:8080/*/*/a*b*.html"),
        ("http://127.0.0.1/", "127.0.0.1/"),
        ("http://h/x?a=1&b=&c&d=x;e=y=z", "h/x?a=*&b=&c&d=*;e=*"),
        ("http://h", "h"),
        ("http://h/*/12*?a*b=1&c=*", "h/%2A/*%2A?a%2Ab=*&c=*"),
    ],
)
def test_a_shape_matches_the_urls_that_it_was_made_of(url: str, shape: str) -> None:
    assert shape_of(url) == shape
    assert re.search(expression_of(shape), url)
    assert not re.search(expression_of(shape), url + "&other=1")


def test_the_shape_of_a_long_url_matches_it_and_says_that_it_is_cut() -> None:
    url = "http://h/list?" + "&".join(f"filter{number}=value" for number in range(40))
    assert shape_of(url).endswith("...")
    assert re.search(expression_of(shape_of(url)), url)
    assert not re.search(expression_of(shape_of(url)), "http://h/list?filter0=value")


def test_the_expression_for_a_shape_is_one_word_to_a_shell() -> None:
    unkept = Unkept()
    for number in range(200):
        unkept.fetched(item(capture(f"http://h/a';reboot;'/{number}")))
    [line] = said(unkept.as_dict())
    *_, option, expression, setting = split(line.rpartition("out: ")[2])
    assert (option, setting) == ("--ignore", "(AMICRAWL_IGNORES)")
    assert re.search(expression, "http://h/a';reboot;'/7")


def test_one_shape_is_named_when_more_than_half_of_200_fetches_are_of_it() -> None:
    unkept = Unkept()
    for number in range(101):
        unkept.fetched(item(capture(f"http://h/cal?d={number}")))
    for letter in range(98):
        unkept.fetched(item(capture(f"http://h/{chr(0x4E00 + letter)}")))
    assert not said(unkept.as_dict())  # 199 fetches
    unkept.fetched(item(capture("http://h/last")))
    [line] = said(unkept.as_dict())
    assert line.startswith("one shape: 101 of 200 fetches are h/cal?d=*; to leave them out: ")
    assert r"--ignore '//h/cal\?d=[^&;]+$'" in line
    for number in range(3):
        unkept.fetched(item(capture(f"http://h/others-{chr(97 + number)}")))
    assert not said(unkept.as_dict())


def test_the_shape_of_most_fetches_is_found_among_very_many_others() -> None:
    unkept = Unkept()
    for number in range(9000):
        unkept.fetched(item(capture(f"http://h/cal?d={number}")))
        unkept.fetched(item(capture(f"http://h/{chr(0x4E00 + number)}")))
    assert unkept.as_dict()["shape"] == {"shape": "h/cal?d=*", "fetches": 9000, "of": 18_000}


def test_a_requisite_that_failed_or_was_kept_out_is_counted_once_for_each_page() -> None:
    unkept = Unkept()
    unkept.way_of = lambda url: [url, "http://h/page"] if url.endswith(".css") else [url]
    unkept.fetched(item(capture("http://h/x.png", status=404), provenance=NEEDED))
    unkept.fetched(item(failed("http://h/y.png"), provenance=NEEDED))
    unkept.fetched(item(capture("http://h/fine.png"), provenance=NEEDED))
    unkept.fetched(item(capture("http://h/other", status=404)))
    sheet = NEEDED._replace(via="http://h/a.css", route="LEER")
    unkept.fetched(item(capture("http://h/f.woff", status=500), provenance=sheet))
    unkept.lacks("http://h/2", "http://ads/", "ignores")
    unkept.lacks("http://h/3", "http://ads/", "ignores")
    found = unkept.as_dict()["requisites"]
    assert (found["pages"], found["requisites"]) == (3, 4)
    assert found["by"] == {"status 404": 1, "connection-refused": 1, "status 500": 1, "ignores": 1}
    [line] = said(unkept.as_dict())
    assert line.startswith("not whole: 3 pages lack 4 of what they need to be shown (")


def test_each_page_counts_that_needs_what_is_not_there_also_by_a_shared_style_sheet() -> None:
    unkept = Unkept()
    unkept.way_of = lambda url: [url, "http://h/1"] if url.endswith(".css") else [url]
    unkept.needs("http://h/1", ["http://h/a.css", "http://h/x.png"])
    sheet = NEEDED._replace(via="http://h/a.css", route="LEE")
    unkept.fetched(item(capture("http://h/f.woff", status=404), provenance=sheet))
    for number in range(1, 5):
        unkept.needs(f"http://h/{number}", ["http://h/x.png", "http://h/a.css"])
    unkept.needs("http://h/whole", ["http://h/x.png"])
    assert said(unkept.as_dict())[0].startswith("not whole: 4 pages lack 1 of what they need ")


def test_pages_made_by_scripts_are_named_with_three_examples() -> None:
    unkept = Unkept()
    for number in range(5):
        unkept.page(f"http://h/{number}", is_made_by_scripts=number > 0)
    [line] = said(unkept.as_dict())
    assert line.startswith("made by scripts: 4 of 5 pages looked at have neither text nor links before")
    assert "(http://h/1, http://h/2, http://h/3)" in line


def test_one_page_that_is_not_whole_is_one_page() -> None:
    unkept = Unkept()
    unkept.lacks("http://h/", "http://h/x", "ignores")
    assert said(unkept.as_dict())[0].startswith("not whole: 1 page lacks 1 of what it needs to be shown")


@pytest.mark.parametrize(
    ("of", "words"), [(1, "1 of 1 page looked at has"), (2, "1 of 2 pages looked at has")]
)
def test_one_page_is_one_page(of: int, words: str) -> None:
    unkept = Unkept()
    for number in range(of):
        unkept.page(f"http://h/{number}", is_made_by_scripts=not number)
    [line] = said(unkept.as_dict())
    assert line.startswith(f"made by scripts: {words} neither text")


def test_of_a_list_a_sample_of_the_html_pages_is_looked_at() -> None:
    unkept = Unkept()
    shell = b"<title>App</title><div id=app></div><script src=app.js></script>"
    for number in range(64 * 4):
        fetched = capture(f"http://h/{number}", body=shell if number % 2 else b"<p>" + b"Words " * 99)
        unkept.listed(item(fetched))
        picture = HEAD.replace(b"text/html", b"image/png")
        unkept.listed(item(capture(f"http://h/{number}.png", head=picture, body=shell)))
        unkept.listed(item(failed(f"http://h/{number}")))
    assert unkept.as_dict()["scripted"] == {
        "pages": 35,
        "of": 64 + 3,
        "examples": ["http://h/1", "http://h/3", "http://h/5"],
    }


def test_what_processes_could_not_keep_adds_up() -> None:
    parts = [Unkept(), Unkept()]
    for part, fetches in zip(parts, (150, 60), strict=True):
        part.page("http://h/", is_made_by_scripts=True)
        part.lacks("http://h/", "http://h/x", "ignores")
        for number in range(fetches):
            part.fetched(item(capture(f"http://h{fetches}/?p={number}")))
    whole = joined_unkept(part.as_dict() for part in [*parts])
    assert whole["scripted"] == {"pages": 2, "of": 2, "examples": ["http://h/", "http://h/"]}
    assert whole["requisites"] == {"pages": 2, "requisites": 2, "by": {"ignores": 2}}
    assert whole["shape"] == {"shape": "h150/?p=*", "fetches": 150, "of": 210}
    assert joined_unkept([{}]) == {}


@pytest.mark.parametrize("foreign", [None, 1, [], {}, {"scripted": 3}, {"scripted": {"pages": "x"}}])
def test_of_foreign_figures_nothing_is_said(foreign: object) -> None:
    assert not said(foreign)
