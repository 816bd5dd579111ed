"""Calendars that run away from today are ended after a number of pages; archives by date are not."""

from __future__ import annotations

from collections import deque
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest
from crawl.stand_in_engine import StandInEngine
from hypothesis import example, given
from hypothesis import strategies as st
from record.exchanges import BEGAN, capture

from amicrawl.config import CrawlConfig, Identity
from amicrawl.crawl.following import Following
from amicrawl.crawl.run import Run
from amicrawl.discovery import IgnoreSet, Scope, Selection, date_in
from amicrawl.frontier import Offer, Source
from amicrawl.record import CaptureItem
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Callable

START = "http://a.example/"
TODAY = BEGAN.date()
_DAY = timedelta(days=1)

SHAPES: dict[str, Callable[[date], str]] = {
    "events/month/2036-02/": lambda day: f"events/month/{day:%Y-%m}/",
    "?tribe-bar-date=2036-02-01": lambda day: f"?tribe-bar-date={day:%Y-%m}-01",
    "?month=2036-02": lambda day: f"?month={day:%Y-%m}",
    "?y=2036&m=2": lambda day: f"?y={day.year}&m={day.month}",
    "?d=2036-01-02": lambda day: f"?d={day}",
    "calendar/2036-02": lambda day: f"calendar/{day:%Y-%m}",
    "calendar/2036/02/": lambda day: f"calendar/{day:%Y/%m}/",
    "calendar/2036/2/1": lambda day: f"calendar/{day.year}/{day.month}/{day.day}",
    "calendar/20360201": lambda day: f"calendar/{day:%Y%m%d}",
    "?m=203602": lambda day: f"?m={day:%Y%m}",
    "?date=02/01/2036": lambda day: f"?date={day:%m/%d/%Y}",
    "?date=01.02.2036": lambda day: f"?date={day:%d.%m.%Y}",
    "?year=2036&month=2": lambda day: f"?year={day.year}&month={day.month}",
    "?ajaxCalendar=1&mo=2&yr=2036": lambda day: f"?ajaxCalendar=1&mo={day.month}&yr={day.year}",
    "?yr=2036&month=02&dy=&cid=my-calendar": lambda day: f"?yr={day:%Y&month=%m}&dy=&cid=my-calendar",
    "index.php?option=com_jevents&year=2036&month=02&day=01": lambda day: (
        f"index.php?option=com_jevents&task=month.calendar&year={day:%Y&month=%m&day=%d}"
    ),
    "month.calendar/2036/02/01/-": lambda day: f"month.calendar/{day:%Y/%m/%d}/-",
    "calendar/view.php?view=month&time=2087683200": lambda day: (
        f"calendar/view.php?view=month&time={(day - date(1970, 1, 1)).days * 86_400}"
    ),
    "calendar/action~month/exact_date~1-2-2036/": lambda day: (
        f"calendar/action~month/exact_date~{day.day}-{day.month}-{day.year}/"
    ),
    "events/week/2036-W05": lambda day: f"events/week/{day:%G-W%V}",
    "events/february-2036": lambda day: f"events/{day:%B-%Y}".lower(),
    "?start=2036-02-01&end=2036-02-28": lambda day: f"?start={day:%Y-%m-01}&end={day.replace(day=28)}",
}
"""Shapes of the URLs of calendars, those of plug-ins of WordPress, Joomla and Moodle among them."""


def crawled(pages: Callable[[str], str], *, most: int) -> tuple[list[str], Following]:
    """Return the paths that a crawl fetches of a site, given its *pages* by path; at most *most*."""
    run = Run(CrawlConfig(), Identity.CANONICAL, engine=StandInEngine())
    scope = Scope()
    scope.widen(START)
    selection = Selection(scope=scope, ignores=IgnoreSet())
    run.following = Following(selection, key_of=run.key_of, starts=(START,), widens=False)
    key = run.key_of(START)
    assert isinstance(key, UrlKey)
    queue, known, fetched = deque([Offer(Seed(START), key, Source.SEED)]), {key}, list[str]()
    while queue and len(fetched) < most:
        offer = queue.popleft()
        if run.following.refusal_of(offer):
            continue
        path = offer.seed.url.removeprefix(START)
        fetched.append(path)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        made = capture(offer.seed.url, head=head, body=pages(path).encode())
        for found in run.following.read_now(CaptureItem(made, offer.seed), offer):
            if found.key not in known:
                known.add(found.key)
                queue.append(found)
    return fetched, run.following


def linked(*paths: str) -> str:
    return " ".join(f'<a href="/{path.replace("&", "&amp;")}">{n}</a>' for n, path in enumerate(paths))


def endless(url_of: Callable[[date], str], *, step: int, days: bool = False) -> Callable[[str], str]:
    """Return the pages of a calendar with an event today, and nothing else for all times."""
    dates = {url_of(TODAY): TODAY}

    def pages(path: str) -> str:
        if not path:
            return linked(url_of(TODAY), "about", "contact") + "Welcome to all of you"
        if path not in dates:
            return "A page about us, with an event of one day"
        today = dates[path]
        near = [today - step * _DAY, today + step * _DAY]
        if days:
            near += [today.replace(day=number) for number in range(1, 29)]
        for each in near:
            dates.setdefault(url_of(each), each)
        event = linked("event/party") if today == TODAY else ""
        return f"<h1>{today:%A, %d %B %Y}</h1>" + linked("about", *map(url_of, near)) + event

    return pages


@pytest.mark.parametrize("shape", SHAPES)
def test_a_calendar_is_ended_in_both_directions(shape: str) -> None:
    step = 31 if "2036-W" not in shape and "-01-02" not in shape else 8
    fetched, following = crawled(endless(SHAPES[shape], step=step), most=1000)
    assert 150 < len(fetched) < 270, "a hundred each way, and those that showed new words at first"
    assert following.counts["kept_out/calendar"] == 2
    assert {"about", "event/party"} <= set(fetched)


def test_the_days_of_a_calendar_are_ended_with_its_months() -> None:
    """They wait in the queue when it is found out: none of them is fetched then."""
    fetched, _ = crawled(endless(lambda day: f"cal/{day}", step=30, days=True), most=5000)
    assert len(fetched) < 400


def test_a_setting_of_0_ends_no_calendar() -> None:
    following = Following(
        Selection(scope=Scope(), ignores=IgnoreSet()),
        key_of=Run(CrawlConfig(), Identity.CANONICAL, engine=StandInEngine()).key_of,
        starts=(START,),
        widens=False,
        calendar_pages=0,
    )
    key = following.key_of(f"{START}2036-02")
    assert isinstance(key, UrlKey)
    offer = Offer(Seed(f"{START}2036-02"), key, Source.LINK, hops=9, extra={"amicrawl_away": 9999})
    assert not following.refusal_of(offer)


@given(st.text(max_size=300))
@example("2036?" + "y=2036&" * 280)
@example("?t=-9999999999999&day=0&month=0&year=2036")
@example("2036/02/31?w=59&year=1500")
def test_any_url_has_a_date_or_none(text: str) -> None:
    found = date_in(START + text)
    if found is not None:
        assert 0 <= found.month <= 12
        assert isinstance(found.beyond((2026, 1, 1)), int)


MONTHS = [date(year, month, 1) for year in range(2025, 2005, -1) for month in range(12, 0, -1)]
"""Twenty years."""
WEEKS = [TODAY - number * 7 * _DAY for number in range(1, 1040)]


def by_index(path: str) -> str:
    """Years, their months, their days, each with articles that have numbers."""
    found = date_in(START + path)
    if not path:
        return linked(*(f"archive/{year}/" for year in range(2025, 2005, -1)))
    if found is None or path.endswith(".html"):
        return f"An article, as there are many: {path}"
    if not found.month:
        return linked(*(f"archive/{found.year}/{month:02}/" for month in range(1, 13)))
    if not found.day:
        return linked(*(f"archive/{found.year}/{found.month:02}/{day:02}/" for day in (7, 14, 21)))
    return linked(f"news/{found.year}{found.month:02}{found.day:02}.{found.day}.html")


def by_month(path: str) -> str:
    """Each month links to the one before and to its days, which alone have articles."""
    found = date_in(START + path)
    if not path:
        return linked(f"news/{MONTHS[0]:%Y-%m}")
    if found is None or "story" in path:
        return "An article"
    if found.day:
        return linked(f"story?id={found.year}{found.month:02}{found.day:02}99")
    place = MONTHS.index(date(found.year, found.month, 1))
    before = [f"news/{month:%Y-%m}" for month in MONTHS[place + 1 : place + 2]]
    return linked(*before, *(f"news/{found.year}-{found.month:02}-{day:02}" for day in (5, 15, 25)))


def by_week(path: str) -> str:
    """Each issue links to the one before, and is a page of words."""
    if not path:
        return linked(f"issue-{WEEKS[0]}.html")
    place = WEEKS.index(date.fromisoformat(path[6:16]))
    words = " ".join(_word(place * 6 + number) for number in range(6))
    return f"Issue of {WEEKS[place]}: {words}" + before(place)


def before(place: int) -> str:
    """Return the link from one issue to the one before."""
    return linked(*(f"issue-{day}.html" for day in WEEKS[place + 1 :][:1]))


def by_picture(path: str) -> str:
    """Each shows a picture of its own, with the same words."""
    if not path:
        return linked(f"issue-{WEEKS[0]}.html")
    if path.endswith(".jpg"):
        return ""
    place = WEEKS.index(date.fromisoformat(path[6:16]))
    return f"The picture of the week <img src='/pictures/{place}.jpg'>" + before(place)


def measured(path: str) -> str:
    """Each shows what was measured."""
    if not path:
        return linked(f"issue-{WEEKS[0]}.html")
    place = WEEKS.index(date.fromisoformat(path[6:16]))
    return " ".join(f"{place + number / 10:.1f}" for number in range(6)) + before(place)


def by_posts(path: str) -> str:
    """Months of a blog, each linking to the one before, with posts that have names."""
    found = date_in(START + path)
    if not path:
        return linked(f"{MONTHS[0]:%Y/%m}/")
    if found is None or not path.endswith(f"{found.month:02}/"):
        return "A post"
    place = MONTHS.index(date(found.year, found.month, 1))
    posts = [f"{found.year}/{found.month:02}/{_word(place)}/"]
    return linked(*posts, *(f"{month:%Y/%m}/" for month in MONTHS[place + 1 :][:1]))


def _word(number: int) -> str:
    letters = "bcdfghjklm"
    return "a".join(letters[int(digit)] for digit in f"{number:05}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pages", "count"),
    [
        (by_index, 1 + 20 + 240 + 2 * 720),
        (by_month, 1 + 240 + 2 * 720),
        (by_week, 1 + len(WEEKS)),
        (by_picture, 1 + 2 * len(WEEKS)),
        (measured, 1 + len(WEEKS)),
        (by_posts, 1 + 240 + 240),
    ],
)
def test_an_archive_of_twenty_years_is_fetched_whole(pages: Callable[[str], str], count: int) -> None:
    fetched, following = crawled(pages, most=10_000)
    assert len(fetched) == count
    assert not following.counts["kept_out/calendar"]
