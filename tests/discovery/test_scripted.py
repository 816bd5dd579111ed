"""Pages whose content is made by scripts are told from those that have content, or have no scripts."""

from __future__ import annotations

import time

import pytest

from amicrawl.discovery.scripted import seen_in

BUNDLE = '<script type="module" crossorigin src="/assets/index-Bq3kXw.js"></script>'
WORDS = "This page tells what it is for, how it is used, and where to read on when it is too short. "

# The documents that current frameworks build, shortened in their file names only.
SHELLS = {
    "react": f"<!doctype html><html><head><title>An application</title>{BUNDLE}</head>"
    '<body><div id="root"></div></body></html>',
    "vue, with a word for those without scripts": f"<head>{BUNDLE}</head><body><noscript><strong>We are "
    "sorry but this application does not work properly without JavaScript enabled. Please enable it to "
    'continue.</strong></noscript><div id="app"></div></body>',
    "next": '<body><div id="__next"></div><script id="__NEXT_DATA__" type="application/json">'
    + '{"props":{"pageProps":{}},"page":"/","query":{},"buildId":"x"}' * 20
    + '</script><script src="/_next/static/chunks/main.js" defer=""></script></body>',
    "nuxt": '<body><div id="__nuxt"></div><div id="teleports"></div><script type="application/json" '
    'data-ssr="false">[{}]</script><script>window.__NUXT__={};window.__NUXT__.config={public:{}}'
    '</script><script type="module" src="/_nuxt/entry.js"></script></body>',
    "sveltekit": '<body data-sveltekit-preload-data="hover"><div style="display: contents"><script>'
    + "{ __sveltekit = { base: '' }; const element = document.currentScript.parentElement; }" * 4
    + "</script></div></body>",
    "angular": '<body><app-root></app-root><link rel="modulepreload" href="chunk.js">'
    '<script src="polyfills.js" type="module"></script><script src="main.js" type="module"></script>',
    "one that turns until it is there": f'<body><img src="turns.gif">Loading ...{BUNDLE}</body>',
    "cut off within a script": '<body><div id="root"></div><script>' + "var x = 1; " * 50,
    "text in a picture and in a comment": f"<!-- {WORDS} --><svg><text>{WORDS}</text></svg>{BUNDLE}",
}
CONTENT = {
    "rendered on the server": f"<body><h1>Alpha</h1><p>{WORDS}</p>{BUNDLE}</body>",
    "links alone": f'<body><a href="/a">a</a><a href="/b">b</a><a href="/c">c</a>{BUNDLE}</body>',
    "no scripts": "<body><div></div></body>",
    "a counter of visits": "<body>Moved<script>count(1)</script></body>",
    "facts for search engines alone": f'<body><script type="application/ld+json">{WORDS * 9}</script>',
    "frames": f'<head>{BUNDLE}</head><frameset><frame src="a.html"><frame src="b.html"></frameset>',
    "a page that sends on": f'<meta http-equiv="refresh" content="0; url=/there">{BUNDLE}',
    "pictures": f"<body>{BUNDLE}" + '<img src="a.png">' * 3,
    "a form": f'<body>{BUNDLE}<form action="/find"><input name="q"></form>',
    "Japanese": f"<body><p>{'日本語の文章。' * 9}</p>{BUNDLE}",
    "nothing": "",
}


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_that_scripts_fill_is_recognised(name: str) -> None:
    assert seen_in(SHELLS[name].encode()).is_made_by_scripts


@pytest.mark.parametrize("name", CONTENT)
def test_a_page_with_content_or_without_scripts_is_none(name: str) -> None:
    assert not seen_in(CONTENT[name].encode()).is_made_by_scripts


def test_the_words_of_a_page_are_counted_without_its_markup() -> None:
    seen = seen_in(b"<head><title>no</title></head><p class='no'>two &amp; words</p><a href=/x>link</a>")
    assert (seen.text, seen.links) == (12, 1)


@pytest.mark.parametrize(
    "piece", [b"<script>", b"<script ", b"<!--", b"<a ", b"<p", b"&", b"<svg><script>"]
)
def test_no_document_takes_longer_than_its_length_allows(piece: bytes) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        seen_in(piece * times)
        return time.process_time() - began

    # Eight times the length may not take sixty-four times as long.
    short = max(seconds(20_000), 0.001)
    assert seconds(160_000) < 40 * short


def test_a_page_of_text_is_not_read_to_its_end() -> None:
    page = b"<script src=x></script>" + b"<p>words</p>" * 10_000 + b"<form><input></form>"
    assert seen_in(page).text == 50_000
    assert 50 < seen_in(page, most_text=50).text < 60
