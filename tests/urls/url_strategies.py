"""URLs for property tests: arbitrary text, and texts built from what matters in a URL."""

from __future__ import annotations

from hypothesis import strategies as st

from amicrawl.urls import Policy

_SCHEMES = ["http", "https", "HTTP", "hTTps", "ftp", "mailto", "", "h2+x"]
_SEPARATORS = ["://", "://", "://", ":/", ":", "//", "/", ""]
_HOSTS = [
    *("example.com", "EXAMPLE.com.", "www.a-b.co.uk", "a..b", "..", "", "1.2.3.4", "0x7f.1", "[::1]"),
    *("[1:0::FFFF]", "[fe80::1%25x]", "[", "a]b", "münchen.de", "my_host.x", "-a.b-", "r3---sn-abc.x"),
    *(
        "x%41",
        "x%c3%a9",
        "%25",
        "a<b",
        "a b",
        "a\tb",
        "xn--bcher-kva",
        "xn--a",
        "xn--abc-",
        "日本語。jp",
    ),
    *(
        "אב.x",
        "אa.x",
        "na\u200dme",
        "İ.x",
        "ΣΑΣ.gr",
        "u:p@h",
        "u@x@h",
        "u%zz@h",
        "\udcff",
        "\ud800",
        "a\\b",
    ),
]
_PORTS = ["", "", "", ":", ":80", ":443", ":0080", ":8080", ":99999", ":x", ":80:80", ":８０"]
_PATH_PIECES = [
    *(
        "/",
        "/",
        "a",
        "B",
        ".",
        "..",
        "%2e",
        "%41",
        "%2f",
        "%zz",
        "%",
        "%c3%a9",
        "é",
        "!",
        " ",
        "\\",
        "*",
    ),
    *("[x]", "|", '"', "<", "//", ";", ":", "~", "%7e", "@", "index.html", "\x00", "\t", "\r\n", "\x7f"),
    *("{", "^", "`", "\udc80", "\u3000", "&", "=", "+", ",", "'"),
]
_QUERY_PIECES = [
    *("a", "b", "c", "=", "&", "&", ";", "+", "%20", "%41", "%zz", "%", "é", "utm_source=1", "ref", "?"),
    *("/", "[]", " ", '"', "\udc80", "%3D", "%26", "~", "!", "%5fga", "\t", "A", "0"),
]
_SPACES = ["", "", "", "", " ", "\n", "\u3000", "\xa0", "\u200b"]


def _joined(pieces: list[str], *, most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=most).map("".join)


_AFTER_HOST = st.tuples(
    st.sampled_from(["/", "/", ""]),
    _joined(_PATH_PIECES, most=7),
    st.one_of(st.just(""), _joined(_QUERY_PIECES, most=8).map("?".__add__)),
    st.sampled_from(["", "", "", "#", "#top", "#100%", "#a#b", "#\t"]),
).map("".join)

BUILT = st.tuples(
    st.sampled_from(_SPACES),
    st.sampled_from(_SCHEMES),
    st.sampled_from(_SEPARATORS),
    st.sampled_from(_HOSTS),
    st.sampled_from(_PORTS),
    _AFTER_HOST,
    st.sampled_from(_SPACES),
).map("".join)
ORDINARY = st.tuples(
    st.sampled_from(["http://", "https://", "HTTP://"]),
    st.sampled_from(["example.com", "www.Example.co.uk", "a-b.github.io", "xn--bcher-kva.de", "h."]),
    st.sampled_from(["", "", "", ":80", ":8080", ":"]),
    _AFTER_HOST,
).map("".join)
LINKS = _AFTER_HOST
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=60)
URLS = st.one_of(BUILT, ORDINARY, ANY_TEXT)

_KEYS = st.frozensets(st.sampled_from(["a", "b", "é", "", "utm_source"]), max_size=2)
POLICIES = st.builds(
    Policy,
    query_allow=_KEYS,
    query_deny=_KEYS,
    fold_trailing_slash=st.booleans(),
    fold_index_file=st.booleans(),
    fold_case=st.booleans(),
    collapse_slashes=st.booleans(),
)
