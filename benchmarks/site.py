"""A web site to crawl, made up: pages, what they need to be shown, odd ways to a page, traps.

    site = Site(100_000, port=8080)
    site.respond(b"/", b"127.0.0.1:8080")     a whole response
    site.truth                               every URL that a crawl from `/` has to find
    site.kind("/calendar/2026/01/")          `truth`, `trap calendar`, `forbidden private`, ...

Pages hang on a tree and are linked across; they are some 12 to 20 KB of HTML. All follows from the
number of pages and a seed. Nothing is stored but the names: a page is joined from a pool of text.

The site has two addresses. `ON` is crawled. `OFF` is somebody else's: of it a crawl may request what
pages on site need to be shown (and for robots.txt), and for nothing else.

The traps are in `site_traps.py`. They have no end, so a crawl that does not defend itself has none.
A crawl may look into them, so they are neither part of the truth nor forbidden.
"""

from __future__ import annotations

import gzip
import random
from functools import cached_property

from benchmarks.site_traps import ENTRANCES, TRAPS, trapped

ON = "127.0.0.1"
OFF = "127.0.0.9"
BRANCHES = 24
"""Pages that hang on one page of the tree."""
CROSS_LINKS = 12
NEWS = 20
GONE = 10
OFF_SITE_REQUISITES = ("/cdn/logo.png", "/cdn/site.css", "/cdn/deep.png")
"""What pages on site need of the other address; the last is named by the style sheet there."""
FORBIDDEN = {
    "/private/": "private",  # robots.txt says no
    "/hidden/": "hidden",  # named in comments, scripts and texts only
    "/based/one.html": "base",  # where a relative link leads if <base> is overlooked
    "/posted/": "post",  # the target of a form that changes something
}
_REDIRECTS = (301, 302, 303, 307, 308, 301, 302, 307)
_SITEMAP_PART = 500
_PARAGRAPHS = 2048
_SYLLABLES = ("ka", "re", "lo", "mi", "tu", "sen", "var", "el", "ish", "on", "der", "pal", "ste", "gro")
_WORDS_OF = {
    200: "OK",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    404: "Not Found",
}
_HTML = "text/html; charset=utf-8"


class Site:
    """A site of *pages* pages, served on *port*."""

    def __init__(self, pages: int, *, port: int, seed: int = 1881) -> None:
        if pages < 50:
            raise ValueError("a site has at least 50 pages")
        self.pages = pages
        self.on = f"http://{ON}:{port}"
        self.off = f"http://{OFF}:{port}"
        source = random.Random(seed)
        words = ["".join(source.choices(_SYLLABLES, k=1 + rank % 4)) for rank in range(3000)]
        self._pool = [
            f'<p class="text">{" ".join(source.choices(words, k=80)).capitalize()}.</p>\n'.encode()
            for _ in range(_PARAGRAPHS)
        ]
        slugs = ["-".join(source.choices(words, k=3)) for _ in range(997)]
        self._paths = ["/"] + [
            f"/{slugs[number % 37]}/{slugs[number % 997]}-{number}.html" for number in range(1, pages)
        ]
        self._encoded = [path.encode() for path in self._paths]
        self._numbers = {path: number for number, path in enumerate(self._encoded)}
        self._anchors = [
            b'<li><a href="%b">%b</a></li>\n' % (path, path[1:-5] or b"Home") for path in self._encoded
        ]
        self.images = max(20, pages // 20)
        self.quiet = max(10, pages // 100)
        """Pages that only the sitemap names."""
        self._fixed = self._fixtures()
        self._nav = b"".join(self._anchors[:8])

    @cached_property
    def truth(self) -> frozenset[str]:
        """The paths, on site, of all that a crawl has to request: pages, requisites, redirects, 404s."""
        found = set(self._paths)
        for number in range(self.images):
            found |= {f"/img/i{number}{size}.png" for size in ("", "-640", "-1280")}
        found |= {f"/quiet/{number}.html" for number in range(self.quiet)}
        found |= {f"/news/{number}.html" for number in range(NEWS)}
        found |= {f"/gone/{number}.html" for number in range(GONE)}
        found |= {path.decode() for path in self._fixed}
        return frozenset(found)

    def in_scope(self, path: str) -> bool:
        """Tell whether *path*, with its query, is one that a crawl has to request."""
        return path in self.truth

    def kind(self, path: str) -> str:
        """Return what *path* on site is: `truth`, `trap NAME`, `forbidden NAME` or `unknown`."""
        if self.in_scope(path):
            return "truth"
        for prefix, name in FORBIDDEN.items():
            if path.startswith(prefix):
                return f"forbidden {name}"
        for prefix, name in TRAPS.items():
            if path.startswith(prefix):
                return f"trap {name}"
        return "unknown"

    def respond(self, target: bytes, host: bytes) -> bytes:
        """Return the response to a GET of *target* that names *host*."""
        if host.startswith(OFF.encode()):
            return self._off_site(target)
        if (number := self._numbers.get(target)) is not None:
            return _response(self._page(number))
        return self._fixed.get(target) or self._made_up(target)

    def _made_up(self, target: bytes) -> bytes:
        """Return the response for what there is any number of beside the pages of the tree."""
        if target.startswith(b"/img/"):
            return _response(_picture(target), "image/png")
        if (respond := trapped(target, nav=self._nav, text=self._pool)) is not None:
            body, fields = respond
            return _response(body, fields=fields)
        if target.startswith((b"/quiet/", b"/news/", b"/private/", b"/hidden/")):
            return _response(self._plain(target, b""))
        return _response(b"<!DOCTYPE html><title>Not found</title><p>There is no such page.", status=404)

    def _page(self, number: int) -> bytes:
        """Return page *number* of the tree."""
        anchors, pages = self._anchors, self.pages
        mixed = number * 2654435761
        links = anchors[number * BRANCHES + 1 : (number + 1) * BRANCHES + 1]
        if number:
            links = [anchors[(number - 1) // BRANCHES], *links]
        for _ in range(CROSS_LINKS - 3):
            mixed = (mixed * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
            links.append(anchors[(mixed >> 33) % pages])
        first, second, third = ((mixed >> shift) % pages for shift in (5, 17, 29))
        pictures = (number % self.images, (mixed >> 21) % self.images)
        return b"".join(
            (
                _TOP % (number, self._nav),
                b"<ul>\n",
                *links,
                # The same in the three other ways to write a URL.
                b'<li><a href="..%b#top">a</a>' % self._encoded[first],
                b'<li><a href="%b%b">b</a>' % (self.on.encode(), self._encoded[second]),
                b"<li><a href='//%b%b'>c</a>" % (self.on[7:].encode(), self._encoded[third]),
                b"</ul>\n",
                *(_PICTURE % ((picture,) * 3) for picture in pictures),
                *self._text(number, 9 + number % 14),
                _ODDITIES if number else b"",
                self._services if not number else ENTRANCES[number % len(ENTRANCES)],
                _BOTTOM % (self.off.encode(), number, self.off.encode()),
            )
        )

    def _text(self, number: int, count: int) -> list[bytes]:
        mixed, last = number * 2654435761, _PARAGRAPHS - 1
        place, stride = mixed & last, (mixed >> 12 | 1) & last
        return [self._pool[place + step * stride & last] for step in range(count)]

    def _plain(self, target: bytes, links: bytes) -> bytes:
        number = int.from_bytes(target[-12:], "big") & 0xFFFF
        text = b"".join(self._text(number, 6))
        return b"<!DOCTYPE html><title>%b</title>\n<h1>%b</h1>%b%b" % (target, target, links, text)

    @cached_property
    def _services(self) -> bytes:
        """What the start page names besides: every odd way to a page, and every trap."""
        links = ["/based/index.html", "/moved/meta.html", "/fields/index.html", "/go/chain/0", "/go/out"]
        links += ["/go/loop", "/posted.html", "/private/a.html", "/private/b/c.html"]
        links += [f"/go/{number}" for number in range(len(_REDIRECTS))]
        links += [f"/gone/{number}.html" for number in range(GONE)]
        anchors = "".join(f'<li><a href="{link}">{link}</a>\n' for link in links)
        return f"<ul>{anchors}</ul>".encode() + b"".join(ENTRANCES)

    def _fixtures(self) -> dict[bytes, bytes]:
        """Return the responses that there are few of."""
        off, on = self.off, self.on
        made = {
            "/assets/site.css": _response(_CSS % off.encode(), "text/css"),
            "/assets/base.css": _response(
                b"@font-face{src:url('f/one.woff2')} i{color:red}", "text/css"
            ),
            "/assets/preloaded.css": _response(b"b{color:blue}", "text/css"),
            "/assets/print.css": _response(b"u{background:url(data:,x)}", "text/css"),
            "/based/index.html": self._with(
                "/based/index.html",
                '<base href="/elsewhere/"><a href="one.html">1</a>'
                '<a href="deep/../two.html">2</a><base href="/not/this/one/">',
            ),
            "/moved/meta.html": self._with(
                "/moved/meta.html", '<meta http-equiv="refresh" content="3; URL=../after/meta.html">'
            ),
            "/fields/index.html": _response(
                self._plain(b"/fields/index.html", b""),
                fields='Link: <next.html>; rel="next", </assets/preloaded.css>; rel=preload\r\n',
            ),
            "/posted.html": self._with(
                "/posted.html", '<form method="post" action="/posted/now"><input name=a></form>'
            ),
            "/go/out": _redirect(302, f"{off}/landing.html"),
            "/go/loop": _redirect(302, "/go/loop"),
            "/robots.txt": _response(
                _ROBOTS % on.encode(),
                "text/plain",
            ),
            "/feed.xml": _response(_feed(on), "application/rss+xml"),
        }
        made |= self._redirected(on) | self._assets() | self._sitemaps(on)
        return {name.encode(): response for name, response in made.items()}

    def _redirected(self, on: str) -> dict[str, bytes]:
        """Return redirects, what they lead to, and what odd links lead to."""
        made = {}
        for number, status in enumerate(_REDIRECTS):
            made[f"/go/{number}"] = _redirect(status, f"{on if number % 2 else ''}/target/{number}.html")
        for number, target in enumerate(("/go/chain/1", "2", "../../target/chain.html")):
            made[f"/go/chain/{number}"] = _redirect(302, target)
        for name in (
            "/elsewhere/one.html",
            "/elsewhere/two.html",
            "/after/meta.html",
            "/fields/next.html",
        ):
            made[name] = self._with(name, "")
        for name in (*map(str, range(len(_REDIRECTS))), "chain"):
            made[f"/target/{name}.html"] = self._with(f"/target/{name}.html", "")
        return made

    def _assets(self) -> dict[str, bytes]:
        """Return what pages need to be shown."""
        made = {}
        for name in ("/assets/f/one.woff2", "/assets/f/two.woff2", "/assets/bg.png", "/favicon.ico"):
            made[name] = _response(_picture(name.encode()), "application/octet-stream")
        made["/assets/site.js"] = _response(b'go("/hidden/of-a-script.html")', "text/javascript")
        return made

    def _sitemaps(self, on: str) -> dict[str, bytes]:
        """Return the index of sitemaps and its parts."""
        made = {}
        parts = range(-(-self.quiet // _SITEMAP_PART))
        made["/sitemap.xml"] = _response(_sitemap_index(on, parts), "application/xml")
        for part in parts:
            quiet = range(part * _SITEMAP_PART, min(self.quiet, (part + 1) * _SITEMAP_PART))
            made[f"/sitemap-{part}.xml.gz"] = _response(_sitemap(on, quiet), "application/gzip")
        return made

    def _with(self, name: str, links: str) -> bytes:
        return _response(self._plain(name.encode(), links.encode()))

    def _off_site(self, target: bytes) -> bytes:
        if target == b"/cdn/site.css":
            return _response(b"p{background:url(deep.png)}", "text/css")
        if target.endswith(b".png"):
            return _response(_picture(target), "image/png")
        if target == b"/robots.txt":
            return _response(b"", "text/plain")
        return _response(b'<!DOCTYPE html><a href="/further.html">further</a>')


def _response(body: bytes, kind: str = _HTML, *, status: int = 200, fields: str = "") -> bytes:
    return b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b" % (
        status,
        _WORDS_OF[status].encode(),
        kind.encode(),
        len(body),
        fields.encode(),
        body,
    )


def _redirect(status: int, target: str) -> bytes:
    return _response(
        b"<!DOCTYPE html><p>It is elsewhere.", status=status, fields=f"Location: {target}\r\n"
    )


def _picture(target: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + target + random.Random(target).randbytes(700)


def _sitemap_index(on: str, parts: range) -> bytes:
    entries = "".join(f"<sitemap><loc>{on}/sitemap-{part}.xml.gz</loc></sitemap>" for part in parts)
    return f'<?xml version="1.0"?><sitemapindex xmlns="{_SITEMAPS}">{entries}</sitemapindex>'.encode()


def _sitemap(on: str, quiet: range) -> bytes:
    entries = "".join(f"<url><loc>{on}/quiet/{number}.html</loc></url>" for number in quiet)
    document = f'<?xml version="1.0"?><urlset xmlns="{_SITEMAPS}">{entries}</urlset>'
    return gzip.compress(document.encode(), mtime=0)


def _feed(on: str) -> bytes:
    items = "".join(f"<item><link>{on}/news/{number}.html</link></item>" for number in range(NEWS))
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{items}</channel></rss>'.encode()


_ROBOTS = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 0\nSitemap: %b/sitemap.xml\n"
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_CSS = b"""@import "base.css"; @import url(print.css) print;
body { background: url( "bg.png" ) } @font-face { src: url('f/two.woff2') format("woff2") }
/* url(/hidden/in-a-comment.png) */ .logo { background-image: url(%b/cdn/logo.png) }
"""
_TOP = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Page %d</title>
<link rel="stylesheet" href="/assets/site.css"><link rel="shortcut icon" href="/favicon.ico">
<link rel="alternate" type="application/rss+xml" href="/feed.xml">
<link rel="dns-prefetch" href="//x.test">
<script src="/assets/site.js" defer></script>
<script>var next = "/hidden/in-a-script.html";
document.write('<a href="/hidden/written.html">x</a>');</script>
</head><body class="article"><nav><ul>
%b</ul></nav><main>
"""
_PICTURE = (
    b'<figure><img src="/img/i%d.png" srcset="/img/i%d-640.png 640w, /img/i%d-1280.png 1280w" alt="">'
    b"</figure>\n"
)
_ODDITIES = b"""<!-- <a href="/hidden/in-a-comment.html">no longer</a> -->
<p>Write to <a href="mailto:a@b.example">us</a>, <a href="javascript:go('/hidden/js.html')">click</a>,
<a href="#top">up</a>, <a href="data:text/html,x">data</a>, <a>nowhere</a>.</p>
<textarea><a href="/hidden/in-a-text.html">x</a></textarea>
"""
_BOTTOM = b"""</main><link rel="stylesheet" href="%b/cdn/site.css">
<footer>Page %d. <a href="%b/elsewhere.html">A neighbour</a></footer></body></html>
"""
