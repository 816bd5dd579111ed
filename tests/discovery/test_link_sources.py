"""What names requisites beside tags and style sheets: scripts, manifests, feeds, sitemaps of text."""

from __future__ import annotations

import time
from html import escape

import pytest

from amicrawl.discovery import Kind, extract, markup
from amicrawl.discovery.scripts import import_map, references

HERE = "https://a.example/dir/page"
SCRIPT = "text/javascript"

PREFIXES = b'<script type=importmap>{"imports": {"lib/": "./l/"}}</script>'
FEED = (
    b"<rss xmlns:media='m' xmlns:itunes='i'><channel><itunes:image href='/cover.jpg'/><item>"
    b"<link>item</link><enclosure url='e.mp3?a=1&amp;b=2' length='1'/><media:content url=\"m.mp4\"/>"
    b"<media:thumbnail url='t.png'></media:thumbnail><media:title>x</media:title></item></channel></rss>"
)
ATOM = (
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link rel='enclosure' href='a.ogg'/>"
    b"<link href='entry'/></entry></feed>"
)
XHTML = (
    b"<!-- <?xml-stylesheet href='no'?> --><?xml-stylesheet\ntype='text/css' href='/p.css' ?>"
    b"<html><base href='/b/'/><a href='a'/><?xml-stylesheet href='no'?></html>"
)
XSLT = (
    b"<?xml version='1.0'?><!-- <xsl:import href='no.xsl'/> --><xsl:stylesheet version='1.0' "
    b"xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:import href='i.xsl'/>"
    b"<xsl:include href='j.xsl'/>"
    b"<xsl:variable name='x' select=\"document('d.xml?a&amp;b')/x\"/><xsl:template match='/'><html>"
    b"<link rel='stylesheet' href='s.css'/><script src='s.js'/><a href='{@url}'/><img src='{$x}.png'/>"
    b"<img src='p.png'/></html></xsl:template></xsl:stylesheet>"
)
MANIFEST = (
    b'{"name": "x", "start_url": "/", "icons": [{"src": "i.png"}, {"src": 1}, 2],'
    b'"shortcuts": [{"icons": [{"src": "/s.png"}]}, {}, "x"]}'
)

SOURCES = [
    (SCRIPT, b'import "./a.js"; import x from"./b.js"\nexport * from \'/c.js\'', "a.js b.js /c.js"),
    (SCRIPT, b"import{a as b}from'../d.js';export{x}from`./e.js`;", "../d.js e.js"),
    (SCRIPT, b'f(()=>import(/* webpackChunkName: "f" */ "./f.js"),import(`./g.js`, {}))', "f.js g.js"),
    (SCRIPT, b'const u = new URL("i.png", import.meta.url).href', "i.png"),
    (SCRIPT, b'new Worker(new URL("w.js",import.meta.url),{type:"module"})', "w.js"),
    (SCRIPT, b'new window.SharedWorker("s.js"); importScripts("/p.js")', "/p.js s.js"),
    (SCRIPT, b'import "https://cdn.example/x.mjs"', "//cdn.example/x.mjs"),
    ("application/javascript; charset=utf-8", b'import "./a.js"', "a.js"),
    # Names of packages, what is put together, what is in a comment or another word.
    (SCRIPT, b'import "react"; import("./" + x + ".js"); import(`./${x}.js`); require("./r.js")', ""),
    (SCRIPT, b'// import "./a.js"\n/** @type {import("./b.js")} */ x.import("./c.js")', ""),
    (SCRIPT, b"new URL('x', base); a.from('./x'); reimport('./y'); NotWorker('z')", ""),
    (SCRIPT, b"// see **/*.js\nlet a = '*/*', b = 'image/*'; import './a.js'", "a.js"),
    ("text/html", b"<script type=module>import './m.js'</script>", "m.js"),
    ("text/html", b"<base href=/b/><script>import('./m'); new Worker('w')</script>", "/b/m /b/w"),
    ("text/html", b'<script type=importmap>{"imports": {"x": "/x.js"}}</script>', "/x.js"),
    ("text/html", PREFIXES + b"<script type=module>import 'lib/y.js'; import 'z'</script>", "l/y.js"),
    ("text/html", b"<script>/* </script><a href=/x>", "/x"),
    ("text/html", b"<link rel=modulepreload href=p.js>", "p.js"),
    ("text/html", b"<link rel=preload as=image imagesrcset='1.png 1x, 2.png 2x'>", "1.png 2.png"),
    ("text/html", b"<noframes><a href=n><img src=n.png></noframes>", "n n.png"),
    ("text/html", b"<iframe srcdoc='<img src=&quot;s.png&quot;><a href=t>&lt;b>'></iframe>", "s.png t"),
    (
        "text/html",
        b"<base href=/a/><iframe srcdoc='<base href=https://a.example/b/><img src=s><a href=#t>'>",
        "/b/s",
    ),
    ("text/html", b"<meta property=og:image content=o><meta name='Twitter:Image' content=t>", "o t"),
    ("text/html", b"<meta property=og:url content=u><meta name=description content=d>", ""),
    ("text/html", b"<bgsound src=b.mid><layer src=l><ilayer src=i></layer>", "b.mid i l"),
    ("text/html", b"<applet codebase=/java code=org.Clock.class></applet>", "/java/org/Clock.class"),
    ("text/html", b"<applet code=Clock></applet><applet code=''></applet>", "Clock.class"),
    ("text/html", b"<applet code=Clock archive='a.jar,b.jar, ' codebase=lib/>", "lib/a.jar lib/b.jar"),
    ("text/html", b"<object><param name=Movie value=m.swf><param name=loop value=no></object>", "m.swf"),
    ("image/svg+xml", b"<svg><feImage href='f.png'/><script xlink:href='s.js'/></svg>", "f.png s.js"),
    ("text/html", b"<p style=\"a: image-set('1.png' 1x, '2.png' type('x/png') 2x)\">", "1.png 2.png"),
    ("text/css", b'a{b:-webkit-image-set(url(1.png) 1x, "2.png" 2x)} c{d: "no.png"}', "1.png 2.png"),
    ("text/css", b'a{b:image-set(linear-gradient(red, blue) 1x, "2.png")} i{content: "no"}', "2.png"),
    ("text/css", rb"a{b:\75rl(1)} c{d:u\72 l('2')} e{f:\000055\R\l(3)}", "1 2 3"),
    ("text/css", rb"@\69mport '4'; @im\70 ort '5'; a{b:image\-set('6' 1x)}", "4 5 6"),
    ("text/css", rb"c{d:'\75rl(no)'; e:\\75rl(no); f:\75arl(no); g:\175rl(no)}", ""),
    ("text/css", rb"a{b:url(\78\79 z)} c{d:url(a\29\78.png)} e{f:url(\33\67)}", "xyz a)x.png 3g"),
    ("text/html", rb"<p style='b:\75rl(1.png)'>", "1.png"),
    ("image/svg+xml", b"<?xml version='1.0'?><?xml-stylesheet href='s?a&amp;b'?><svg/>", "s?a&b"),
    (
        "application/xhtml+xml",
        XHTML,
        "/p.css /b/a",
    ),
    ("application/rss+xml", b"<?xml-stylesheet type='text/xsl' href='f.xsl'?>" + FEED,
     "item /cover.jpg e.mp3?a=1&b=2 m.mp4 t.png f.xsl"),
    ("", b"<?xml version='1.0'?><?xml-stylesheet href='s.xsl'?><urlset/>", "s.xsl"),
    ("text/html", b"<?xml-stylesheet href='no.css'?><a href=a>", "a"),
    ("application/rss+xml", FEED, "item /cover.jpg e.mp3?a=1&b=2 m.mp4 t.png"),
    ("application/atom+xml", ATOM, "entry a.ogg"),
    ("application/manifest+json", MANIFEST, "i.png /s.png"),
    ("application/manifest+json", b"[1]", ""),
    ("application/manifest+json", b'{"icons": {"src": "x"}}', ""),
]  # fmt: skip


@pytest.mark.parametrize(("content_type", "payload", "names"), SOURCES)
def test_what_names_a_requisite_is_read(content_type: str, payload: bytes, names: str) -> None:
    found = [link.url for link in extract(payload, url=HERE, content_type=content_type)]
    assert sorted(found) == sorted(_address(name) for name in names.split())


def _address(name: str) -> str:
    if name.startswith("//"):
        return f"https:{name}"
    root = "https://a.example" if name.startswith(("/", "..")) else "https://a.example/dir"
    return f"{root}/{name.removeprefix('..').removeprefix('/')}"


@pytest.mark.parametrize(
    ("content_type", "url", "payload", "names"),
    [
        ("application/json", "https://a.example/dir/manifest.json", MANIFEST, "i.png /s.png"),
        ("application/octet-stream", "https://a.example/dir/a.webmanifest?1", MANIFEST, "i.png /s.png"),
        ("application/json", "https://a.example/dir/data.json", MANIFEST, ""),
        (
            "text/plain",
            "https://a.example/sitemap-1.txt",
            b"\xef\xbb\xbfhttps://a.example/1\r\nx\n",
            "/1",
        ),
        ("text/plain", "https://a.example/notes.txt", b"https://a.example/1\n", ""),
    ],
)
def test_a_manifest_or_sitemap_of_a_general_type_is_told_by_its_name(
    content_type: str, url: str, payload: bytes, names: str
) -> None:
    found = [link.url for link in extract(payload, url=url, content_type=content_type)]
    assert found == [_address(name) for name in names.split()]


def test_a_worker_is_where_the_page_of_its_script_says_and_an_import_where_the_script_lies() -> None:
    found = extract(
        b"new Worker('w.js'); import './i.js'; importScripts('s.js')",
        url="https://cdn.example/js/app.js",
        content_type=SCRIPT,
        document="https://a.example/page/",
    )
    assert {link.url: link.where for link in found} == {
        "https://cdn.example/js/i.js": "script import",
        "https://cdn.example/js/s.js": "worker script",
        "https://a.example/page/w.js": "script worker",
    }
    assert {link.kind for link in found} == {Kind.REQUISITE}


@pytest.mark.parametrize("content_type", ["text/xsl", "text/xml", "application/xslt+xml", ""])
def test_what_an_xslt_style_sheet_makes_is_where_its_page_is_and_an_import_where_the_sheet_is(
    content_type: str,
) -> None:
    """As browsers resolve them. What has a `{...}` in it is an expression, and not an address."""
    found = extract(XSLT, url="https://a.example/style/s.xsl", content_type=content_type, document=HERE)
    assert [link.url for link in found] == [
        *("https://a.example/style/i.xsl", "https://a.example/style/j.xsl"),
        "https://a.example/style/d.xml?a&b",
        *("https://a.example/dir/s.css", "https://a.example/dir/s.js", "https://a.example/dir/p.png"),
    ]
    assert {link.kind for link in found} == {Kind.REQUISITE}


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"imports": []}', b'{"imports": {"x": 1}, "scopes": [1]}', b"[" * 100_000],
)
def test_an_import_map_that_says_nothing_of_use_is_empty(text: bytes) -> None:
    assert import_map(text) == {}


def test_a_reference_is_found_however_far_it_is_indented() -> None:
    deep = b"\n" + b" " * 40
    script = b"""import(%b/* webpackChunkName: "a" */ './a.js'%b); new URL(%b'./b.png', import.meta.url);
        export { x } from%b'./c.js'""" % (deep, deep, deep, deep)
    assert {name for name, _, _ in references(script)} == {"./a.js", "./b.png", "./c.js"}


def test_imports_without_an_entry_in_a_large_map_take_no_longer_than_their_length_allows() -> None:
    def seconds(entries: int) -> float:
        imports = ",".join(f'"lib{number}/": "/{number}/"' for number in range(entries))
        page = b'<script type=importmap>{"imports": {%b}}</script>' % imports.encode()
        page += b"<script>%b</script>" % (b'import"x/y";' * 5000)
        began = time.process_time()
        assert extract(page, url=HERE, content_type="text/html") == []
        return time.process_time() - began

    # Two hundred times the entries may not take as much longer.
    short = max(seconds(4), 0.01)
    assert seconds(800) < 10 * short


def test_an_import_map_has_the_entries_of_its_scopes() -> None:
    assert import_map(b'{"imports": {"a": "/a"}, "scopes": {"/s/": {"b": "/b"}, "/t/": null}}') == {
        "a": "/a",
        "b": "/b",
    }


@pytest.mark.parametrize(
    "unit",
    [
        *(b"import", b"import(", b"import ", b"import/*", b"import(/**/", b'import"', b"import'./"),
        *(b"from ", b"from/*x*/", b'from"./x"', b"/*", b"//", b"\n//", b"new URL(", b'URL("x"'),
        *(b'URL("x",', b"Worker(", b'Worker("x")', b"import.meta importScripts(", b"import `"),
        b'importScripts("x") /*',
    ],
)
def test_a_script_that_is_one_thing_a_million_times_is_read_to_its_end(unit: bytes) -> None:
    payload = unit * (1_000_000 // len(unit)) + b"\n*/;import './end.js'"
    assert {reference[1] for reference in references(payload)} <= {Kind.REQUISITE}
    assert len(extract(payload, url=HERE, content_type=SCRIPT)) <= 2
    of_feed = extract(b"<rss>" + b"<media:content url=" * 50_000, url=HERE, content_type="text/xml")
    assert of_feed == []


@pytest.mark.parametrize(
    "unit",
    [
        *(b"<xsl:import ", b"<xsl:import href", b"<xsl:include href='", b"document(", b"document('"),
        *(
            b"<!--",
            b"<image:loc>",
            b"<image:loc> ",
            b"<image:",
            b"<xhtml:link href",
            b"<xhtml:link href='",
        ),
    ],
)
def test_xslt_or_a_sitemap_that_is_one_thing_a_million_times_is_read(unit: bytes) -> None:
    for begins in (XSLT[: XSLT.index(b"><xsl:import") + 1], b"<urlset>"):
        payload = begins + unit * (1_000_000 // len(unit))
        assert len(extract(payload, url=HERE, content_type="text/xml")) <= 1


def test_documents_in_documents_are_read_so_deep_and_no_deeper() -> None:
    inner = "<img src=/deep.png>"
    for _ in range(6):
        inner = f'<img src="/x.png"><iframe srcdoc="{escape(inner)}">'
    found = [link.url for link in extract(inner.encode(), url=HERE, content_type="text/html")]
    assert found == ["https://a.example/x.png"]


def test_the_search_stops_at_each_element_that_has_references() -> None:
    stopped_at = set(markup._NAMES.split(b"|"))
    assert {*markup._ADDRESSES, *markup._SETS, *markup._SPECIAL, *markup._RAW} <= stopped_at
