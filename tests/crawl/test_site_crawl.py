"""The spider `site`: what it takes of a site, and what not."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from archive_reading import check_sealed, records, rows
from loopback import RawServer, crawl, crawl_site, page, recrawl, write_lines
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

HTML = "Content-Type: text/html; charset=utf-8"
SITEMAP = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://127.0.0.1:PORT/site/from-sitemap</loc></url></urlset>"""


def links(*urls: str) -> bytes:
    return "".join(f'<a href="{url}">x</a>' for url in urls).encode()


class Site:
    """A site below /site/ on 127.0.0.1, and a neighbour of it on 127.0.0.2."""

    def __init__(self) -> None:
        self.server = RawServer(self._respond, keep_open=True)

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        host = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"host:"))
        if b"127.0.0.2" in host:
            return self._neighbour(path)
        known = self._pages().get(path)
        return known if known is not None else page(b"none", HTML, status="404 Not Found")

    def _neighbour(self, path: str) -> bytes:
        if path.endswith(".css"):
            return page(b"body { background: url(more.png) }", "Content-Type: text/css")
        return page(links("/deeper"), HTML)

    def _pages(self) -> dict[str, bytes]:
        port = self.server.port
        off = f"http://127.0.0.2:{port}"
        start = (
            links("a", "/outside", f"{off}/off-site", "moved", "moved-off", "gz", "s1")
            + f'<link rel=stylesheet href="{off}/far.css"><img srcset="/pic1.png 1x, pic2.png 2x">'
            f'<!-- <a href="comment">c</a> --><script>var u = "/site/script";</script>'.encode()
        )
        return {
            "/robots.txt": page(
                b"User-agent: *\nDisallow: /site/secret\n"
                b"Sitemap: %b/site/map.xml.gz\nSitemap: %b/site/map" % ((self.server.url.encode(),) * 2)
            ),
            "/site/": page(start, HTML, "Link: </site/header>; rel=next"),
            "/site/a": page(
                links("b", "secret", "login.php", "y/y/y/y/y/y/y/y")
                + b'<meta http-equiv=refresh content="0;url=refreshed">',
                HTML,
            ),
            "/site/b": page(b'<base href="/site/deep/">' + links("c"), HTML),
            "/site/deep/c": page(links("d", "../../site/a"), HTML),
            "/site/deep/d": page(b"the end", HTML),
            "/site/moved": page(b"", "Location: /site/landed", status="301 Moved"),
            "/site/landed": page(links("after-landing"), HTML),
            "/site/after-landing": page(b"", HTML),
            "/site/moved-off": page(b"", f"Location: {off}/tracker", status="302 Found"),
            "/site/gz": page(gzip.compress(links("in-gzip")), HTML, "Content-Encoding: gzip"),
            "/site/in-gzip": page(b"", HTML),
            "/site/refreshed": page(b"", HTML),
            "/site/header": page(b"", HTML),
            "/site/from-sitemap": page(b"", HTML),
            "/site/map": page(
                b"%b/site/from-lines\n" % self.server.url.encode(), "Content-Type: text/plain"
            ),
            "/site/from-lines": page(b"", HTML),
            "/site/map.xml.gz": page(
                gzip.compress(SITEMAP.replace(b"PORT", str(port).encode())),
                "Content-Type: application/x-gzip",
            ),
            **{
                f"/site/s{n}": page(links(f"s{n + 1}", f"error-{n}") + b"<p>%d</p>" % n, HTML)
                for n in range(1, 30)
            },
            # One text under ever new names, as a server sends it that knows no 404.
            **{f"/site/error-{n}": page(links("lost/lost"), HTML) for n in range(1, 30)},
        }


@dataclass(frozen=True)
class Crawled:
    done: subprocess.CompletedProcess[str]
    out: Path
    port: int

    @property
    def taken(self) -> set[str]:
        """The paths on the site itself, and whole addresses elsewhere."""
        return {row["url"].replace(f"http://127.0.0.1:{self.port}", "") for row in rows(self.out)}

    @property
    def crawl_json(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = json.loads((self.out / "crawl.json").read_text())
        return found


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    out = tmp_path_factory.mktemp("site") / "out"
    settings = {
        "AMICRAWL_ROBOTS": "obey",
        "AMICRAWL_SITEMAPS": "1",
        "AMICRAWL_WARC_METADATA": "1",
        "AMICRAWL_IGNORES": r"/login\.php$ \.never$",
    }
    site = Site()
    with site.server as server:
        done = crawl_site(f"{server.url}/site/", out, settings=settings)
        yield Crawled(done, out, server.port)


def test_the_site_is_archived_whole(crawled: Crawled) -> None:
    assert crawled.done.returncode == ExitCode.DONE, crawled.done.stderr
    wanted = {"", "a", "b", "deep/c", "deep/d", "moved", "landed", "after-landing", "gz", "in-gzip"}
    wanted |= {"refreshed", "header", "from-sitemap", "from-lines", "map.xml.gz", "moved-off"}
    assert {f"/site/{name}" for name in wanted} <= crawled.taken
    for path in crawled.out.glob("*.warc.gz"):
        check_sealed(path)


def test_nothing_outside_is_taken_but_what_its_pages_need(crawled: Crawled) -> None:
    elsewhere = {url for url in crawled.taken if not url.startswith("/site/")}
    neighbour = f"http://127.0.0.2:{crawled.port}"
    # Pictures of the page lie where they like, and so do its style sheet and what that names.
    needed = {"/pic1.png", f"{neighbour}/far.css", f"{neighbour}/more.png"}
    assert elsewhere == {*needed, "/robots.txt", f"{neighbour}/robots.txt"}
    assert "/site/pic2.png" in crawled.taken


def test_what_only_looks_like_a_link_is_none(crawled: Crawled) -> None:
    assert not {"/site/comment", "/site/script"} & crawled.taken


def test_robots_ignores_and_traps_keep_pages_out_and_are_counted(crawled: Crawled) -> None:
    fetched = {row["url"] for row in rows(crawled.out) if row["status"]}
    assert not {url for url in fetched if "secret" in url or "login.php" in url or "/y/y" in url}
    refused = [row for row in rows(crawled.out) if "secret" in row["url"]]
    assert [row["error"].split(":")[0] for row in refused] == ["robots-denied"]
    counts = crawled.crawl_json["links"]
    assert counts["kept_out/ignores"] == 1
    assert counts["kept_out/shape"] == 1
    assert counts["kept_out/scope"] >= 3
    assert crawled.crawl_json["ignored"] == {r"/login\.php$": 1}


def test_one_text_under_many_names_is_taken_for_an_error_page(crawled: Crawled) -> None:
    # The first few are believed; what those link to is one page, and a trap no deeper than that.
    assert crawled.crawl_json["links"]["error_pages"] >= 15
    assert {f"/site/error-{n}" for n in range(1, 30)} <= crawled.taken


def found(crawled: Crawled, path: str) -> tuple[str, str, int]:
    """Return how the index says that *path* was found: on which path, as what, and how far."""
    origin = f"http://127.0.0.1:{crawled.port}"
    [row] = [row for row in rows(crawled.out) if row["url"] == origin + path]
    return row["via"].removeprefix(origin), row["link"], row["hops"]


def test_the_index_says_where_each_url_was_found_first(crawled: Crawled) -> None:
    assert found(crawled, "/site/") == ("", "seed", 0)
    assert found(crawled, "/site/b") == ("/site/a", "link", 2)
    assert found(crawled, "/site/deep/d") == ("/site/deep/c", "link", 4)
    assert found(crawled, "/site/pic2.png") == ("/site/", "requisite", 1)
    assert found(crawled, "/site/landed") == ("/site/moved", "redirect", 2)
    assert found(crawled, "/site/after-landing") == ("/site/landed", "link", 3)
    assert found(crawled, "/robots.txt") == ("/site/", "robots", 1)
    assert found(crawled, "/site/map.xml.gz") == ("/robots.txt", "robots", 1)
    assert found(crawled, "/site/from-sitemap") == ("/site/map.xml.gz", "sitemap", 2)
    [refused] = [row for row in rows(crawled.out) if "secret" in row["url"]]
    assert (refused["via"].rpartition("/")[2], refused["link"], refused["hops"]) == ("a", "link", 2)


def test_explain_and_frontier_show_say_how_a_url_was_found(crawled: Crawled) -> None:
    origin = f"http://127.0.0.1:{crawled.port}"
    out = str(crawled.out)

    def said(*words: str) -> list[str]:
        return [line.strip() for line in CliRunner().invoke(app, words).output.splitlines()]

    explained = said("explain", f"{origin}/site/after-landing", "--dir", out)
    way = [line.removeprefix("frontier").strip() for line in explained if line.startswith("frontier")]
    assert way[:4] == [
        "crawled, found as link, 3 hops from a start",
        f"first found on {origin}/site/landed",
        f"first found on {origin}/site/moved",
        f"first found on {origin}/site/",
    ]
    sentence = f"It was first found on {origin}/site/landed (link), 3 hops from a start, LRL."
    assert sentence in said("frontier", "explain", out, f"{origin}/site/after-landing")
    shown = said("frontier", "show", out, f"{origin}/site/pic2.png")
    assert {"via", "link", "hops", "route"} <= {line.partition(" ")[0] for line in shown}
    assert any(line.split() == ["via", f"{origin}/site/"] for line in shown)
    needed = said("explain", f"{origin}/site/pic2.png", "--dir", out, "--json")
    assert json.loads("".join(needed))["kind"] == "requisite"


def test_each_capture_has_a_metadata_record_where_that_is_requested(crawled: Crawled) -> None:
    origin = f"http://127.0.0.1:{crawled.port}"
    said: dict[str, list[str]] = {}
    for record in records(crawled.out):
        if record.rec_type == "metadata":
            assert record.rec_headers["Content-Type"] == "application/warc-fields"
            response = record.rec_headers["WARC-Concurrent-To"]
            said[response] = record.raw_stream.read().decode().splitlines()
    by_url = {row["url"]: said.pop(row["record_id"]) for row in rows(crawled.out) if row["record_id"]}
    assert not said
    assert by_url[f"{origin}/site/"][0] == "seed: "
    assert by_url[f"{origin}/site/after-landing"][:2] == [
        f"via: {origin}/site/landed",
        "hopsFromSeed: LRL",
    ]
    assert by_url[f"{origin}/site/pic2.png"][1] == "hopsFromSeed: E"
    assert by_url[f"{origin}/robots.txt"][1] == "hopsFromSeed: P"
    assert by_url[f"{origin}/site/from-sitemap"][1] == "hopsFromSeed: MM"


SHELL = (
    b'<head><title>Items</title><script type=module src="/app.js"></script></head>'
    b"<body><div id=root></div></body>"
)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_crawl_of_a_list_says_that_its_pages_are_made_by_scripts(
    tmp_path: Path, processes: str
) -> None:
    out = tmp_path / "out"
    with RawServer(lambda _: page(SHELL, HTML), keep_open=True) as server:
        urls = [
            f"http://127.0.0.{host}:{server.port}/{number}" for host in (1, 2) for number in range(9)
        ]
        seeds = write_lines(tmp_path / "seeds.txt", urls)
        done = crawl(seeds, out, arguments=[f"processes={processes}"])
    assert done.returncode == ExitCode.DONE, done.stderr
    scripted = json.loads((out / "crawl.json").read_text())["unkept"]["scripted"]
    assert (scripted["pages"], scripted["of"], len(scripted["examples"])) == (18, 18, 3)
    assert "made by scripts: 18 of 18 pages looked at have" in done.stderr
    shown = CliRunner().invoke(app, ["inspect", str(out)]).output
    assert "made by scripts: 18 of 18 pages" in shown


def test_a_crawl_says_at_its_end_what_it_could_not_keep(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1].decode()
        if path.startswith("/item"):
            return page(SHELL + path.encode() if path == "/item/0" else SHELL, HTML)
        if path.startswith("/cal"):
            day = int(path.rpartition("=")[2] or 0)
            return page(b"<p>A day %d</p>" % day + links(f"/cal?d={day + 1}"), HTML)
        if path == "/":
            starts = links(*(f"/item/{number}" for number in range(4)), "/cal?d=0")
            return page(starts + b'<link rel=stylesheet href=/a.css><img src="/ads.never">', HTML)
        if path == "/a.css":
            return page(b"body { background: url(/lost.png) }", "Content-Type: text/css")
        return page(b"", HTML) if path == "/app.js" else page(b"", HTML, status="404 Not Found")

    out = tmp_path / "out"
    settings = {"AMICRAWL_IGNORES": r"\.never$", "AMICRAWL_MAX_URLS": "260"}
    with RawServer(respond, keep_open=True) as server:
        done = crawl_site(f"{server.url}/", out, settings=settings)
    assert done.returncode == ExitCode.DONE, done.stderr
    unkept = json.loads((out / "crawl.json").read_text())["unkept"]
    assert unkept["scripted"]["pages"] == 4
    assert len(unkept["scripted"]["examples"]) == 3
    assert unkept["requisites"] == {"pages": 1, "requisites": 2, "by": {"ignores": 1, "status 404": 1}}
    assert unkept["shape"]["shape"] == f"{server.url[7:]}/cal?d=*"
    shown = CliRunner().invoke(app, ["inspect", str(out)]).output
    summary = CliRunner().invoke(app, ["summary", str(out)]).output
    for line in ("made by scripts: 4 of ", "not whole: 1 page lacks 2 ", "one shape: 2"):
        assert line in done.stderr
        assert line in shown
        assert f"note: {line}" in summary
    requested = CliRunner().invoke(app, ["query", str(out), "pages_not_whole", "--json"]).output
    assert json.loads(requested) == {
        "page_url": f"{server.url}/",
        "rule": "status 404",
        "requisites": 1,
        "example": f"{server.url}/lost.png",
    }


def test_a_url_is_taken_once_however_often_it_is_linked_to(crawled: Crawled) -> None:
    urls = [row["url"] for row in rows(crawled.out)]
    assert len(urls) == len(set(urls))


@pytest.mark.parametrize(("settings", "stored"), [({}, 1), ({"AMICRAWL_DEDUP": "seed"}, 2)])
def test_a_payload_is_stored_once_unless_told_otherwise(
    settings: dict[str, str], stored: int, tmp_path: Path
) -> None:
    def respond(head: bytes) -> bytes:
        is_start = head.split(b" ")[1] == b"/"
        return page(links("/1", "/2") if is_start else b"the same" * 100, HTML)

    with RawServer(respond) as server:
        done = crawl_site(f"{server.url}/", tmp_path / "out", settings=settings)
    assert done.returncode == ExitCode.DONE, done.stderr
    [warc] = (tmp_path / "out").glob("*.warc.gz")
    assert gzip.decompress(warc.read_bytes()).count(b"the same" * 100) == stored
    assert len(rows(tmp_path / "out")) == 3
    check_sealed(warc)


@pytest.mark.parametrize(
    ("arguments", "settings", "taken"),
    [
        (["depth=shallow"], {}, {"/", "/p.png"}),
        ([], {"AMICRAWL_MAX_HOPS": "1"}, {"/", "/p.png", "/1", "/1b"}),
        (["depth=1"], {}, {"/", "/p.png", "/1", "/1b"}),
        ([], {"AMICRAWL_MAX_HOPS": "1", "AMICRAWL_REQUISITES": "0"}, {"/", "/1", "/1b"}),
        ([], {"AMICRAWL_MAX_URLS": "3"}, {"/", "/p.png", "/1"}),
        ([], {"AMICRAWL_MAX_HOST_URLS": "2", "AMICRAWL_EXCLUDE": r"\.png$"}, {"/", "/1"}),
        ([], {"AMICRAWL_HOSTS": "127.0.0.9"}, {"/", "/p.png"}),
    ],
)
def test_a_crawl_goes_as_far_as_it_is_told(
    arguments: list[str], settings: dict[str, str], taken: set[str], tmp_path: Path
) -> None:
    pages = {
        "/": page(links("/1", "/1b") + b"<img src=/p.png>", HTML),
        "/1": page(links("/2"), HTML),
        "/2": page(links("/1"), HTML),
    }

    def respond(head: bytes) -> bytes:
        return pages.get(head.split(b" ")[1].decode(), page(b"", HTML))

    with RawServer(respond) as server:
        done = crawl_site(f"{server.url}/", tmp_path / "out", arguments=arguments, settings=settings)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert {row["url"].replace(server.url, "") for row in rows(tmp_path / "out")} == taken


def test_a_start_that_moved_within_its_domain_takes_the_new_place_with_it(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        path = head.split(b" ")[1]
        if path == b"/old/":
            return page(b"", "Location: /new/", status="301 Moved")
        return page(links("/new/more", "/else/where") if path == b"/new/" else b"", HTML)

    with RawServer(respond) as server:
        starts = write_lines(tmp_path / "starts.txt", [f"{server.url}/old/", "not a url"])
        done = crawl_site("", tmp_path / "out", arguments=[f"file={starts}"])
        assert done.returncode == ExitCode.DONE, done.stderr
        again = crawl_site(f"{server.url}/old/", tmp_path / "out")
    assert again.returncode == ExitCode.DONE
    paths = [row["url"].replace(server.url, "") for row in rows(tmp_path / "out")]
    assert sorted(paths) == ["/new/", "/new/more", "/old/"]


def test_a_redirect_that_leads_nowhere_and_a_choice_are_read_as_pages(tmp_path: Path) -> None:
    """As browsers show them; a redirect that leads somewhere has nothing to show."""

    def respond(head: bytes) -> bytes:
        responses = {
            b"/": page(links("/nowhere", "/choice", "/moved"), HTML),
            b"/nowhere": page(links("/behind-nowhere"), HTML, status="302 Found"),
            b"/choice": page(links("/behind-choice"), HTML, status="300 Multiple Choices"),
            b"/moved": page(links("/no"), HTML, "Location: /", status="301 Moved"),
        }
        return responses.get(head.split(b" ")[1], page(b"", HTML))

    with RawServer(respond) as server:
        done = crawl_site(server.url, tmp_path / "out")
    assert done.returncode == ExitCode.DONE, done.stderr
    found = {row["url"].replace(server.url, ""): row["final_url"] for row in rows(tmp_path / "out")}
    assert set(found) - {"", "/"} == {
        *("/nowhere", "/choice", "/moved", "/behind-nowhere", "/behind-choice"),
    }
    assert found["/nowhere"] == f"{server.url}/nowhere"


def test_a_recrawl_of_a_site_takes_what_has_come_to_it_since(tmp_path: Path) -> None:
    pages = {"/": page(links("/old"), HTML)}

    def respond(head: bytes) -> bytes:
        return pages.get(head.split(b" ")[1].decode(), page(b"", HTML))

    out = tmp_path / "out"
    with RawServer(respond) as server:
        crawl_site(f"{server.url}/", out)
        for name in ("/new", "/newer"):
            pages["/"] = page(links("/old", name), HTML)
            done = recrawl(out, arguments=["before=2100-01-01"])
            assert done.returncode == ExitCode.DONE, done.stderr
    assert {row["url"].replace(server.url, "") for row in rows(out)} == {"/", "/old", "/new", "/newer"}


def test_a_start_that_moved_to_another_domain_brings_that_page_alone(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        if b"127.0.0.2" in head:
            return page(links("/all-of-theirs"), HTML)
        return page(b"", f"Location: http://127.0.0.2:{server.port}/", status="302 Found")

    with RawServer(respond) as server:
        done = crawl_site(f"{server.url}/", tmp_path / "out")
    assert [row["url"] for row in rows(tmp_path / "out")][1:] == [f"http://127.0.0.2:{server.port}/"]
    assert "on another domain" in done.stderr
