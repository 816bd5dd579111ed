r"""What a robots.txt file says to one crawler: which URLs it may request, how fast, and sitemaps.

    body --> lines --> the groups of our agent, or else of *, merged --> spelled --> protego

By RFC 9309. Lines and groups are read here, the rules are compared by protego: the longest pattern that
matches decides, and of two as long the one that allows. Before that, pattern and URL are both *spelled*:
every octet but letters, digits and ``. _ - /`` as ``%XX``, and these never so. Hence they are compared
octet by octet, whatever encoding they are in, and protego meets no character that it would read in
a way of its own. ``%2F`` and ``/`` stay two things, as for protego and others.

What is tolerated beyond the RFC: names of directives misspelt in the usual ways, a forgotten colon,
white space within names, a name of a group with a version or `*` behind it, UTF-16 with its byte order
mark. An allowed `/index.html` allows `/` too.

Nothing here raises on a file or on a URL. Time and memory are bounded: of a file only the first 500 KiB
count, of its groups only ours is kept, and a URL that would take more than `MOST_STEPS` to compare is
refused.
"""

from __future__ import annotations

import re
from enum import Enum
from itertools import islice, product
from typing import TYPE_CHECKING

from protego import Protego

from amicrawl.urls import octets

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PARSED = 500 << 10
"""Octets of a file that are read (RFC 9309, 2.5); a line that is cut there is left out."""
MOST_STEPS = 50_000_000
"""Comparisons of characters that one URL is worth, some 50 ms; no site of good will needs more."""
MOST_RULES = 20_000
"""Rules that are kept of one file, the first; of honest files no more fit into what is read."""
MOST_SITEMAPS = 10_000
"""Sitemaps that are kept of one file."""

_LONGEST_DELAY = 1e6
_RULE_OCTETS = 700
"""Memory that protego takes for a rule beyond its text; measured."""

_BYTE_ORDER_MARK = re.compile(rb"\xef(?:\xbb\xbf?)?")
_LINE_END = re.compile(rb"[\r\n]+")
_DIRECTIVE = re.compile(
    rb"(user[- ]?agent|allow|dis{1,2}al{1,2}ow|diasllow|disallaw|desallow|crawl[- ]?delay|site-?maps?)"
    # Without a colon one word must follow, or every sentence that begins with "Allow" were a rule.
    rb"(?:\s*:\s*(.*)|\s+([^\s:]\S*))",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(rb"[^\s/;,()*]*")
_COMPATIBLE = re.compile(rb"mozilla/\S*\s*\(compatible;\s*", re.IGNORECASE)
_SECONDS = re.compile(rb"[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18}")

_SPELLED_OTHERWISE = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._/-]")
_SPELLED_OTHERWISE_IN_PATTERN = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._/*-]")
_SPELLED_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(/[A-Za-z0-9._/-]*)")
_BEFORE_PATH = re.compile(rb"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*")


def product_token(agent: str | bytes) -> bytes:
    """Return the name by which a robots.txt file calls the crawler with this User-Agent, in lower case.

    That is its first product without the version; of `Mozilla/5.0 (compatible; name/1.0)`, the name.
    """
    text = _octets(agent).strip()
    disguise = _COMPATIBLE.match(text)
    match = _TOKEN.match(text, disguise.end() if disguise else 0)
    return match[0].lower() if match else b""


class RobotsRules:
    """What one file says to one agent. Equal if it says the same; never changes.

    The patterns are kept as text and made ready for comparison when a URL is first requested. `fold`
    gives that memory back.
    """

    __slots__ = ("_matcher", "_rules", "_steps", "crawl_delay", "sitemaps")

    crawl_delay: float | None
    """Seconds between two requests that the site wishes: 0 to a million, to a millionth."""
    sitemaps: tuple[str, ...]
    """Sitemaps as written, each once, in the order of the file. They may be relative, or no URLs."""

    def __init__(
        self,
        rules: tuple[tuple[bool, bytes], ...] = (),
        *,
        crawl_delay: float | None = None,
        sitemaps: tuple[str, ...] = (),
    ) -> None:
        """Hold *rules*: of each whether it allows, and its pattern as written in a file."""
        # One rule twice says no more than once; spelled alike they are one.
        patterns = ((allows, _pattern(written)) for allows, written in rules if written)
        spelled = list(islice(dict.fromkeys(patterns), MOST_RULES))
        self._rules = "".join(
            f"{'Allow' if allows else 'Disallow'}: {pattern}\n" for allows, pattern in spelled
        )
        wildcards = [len(pattern) for _, pattern in spelled if "*" in pattern]
        self._steps = (len(spelled), sum(wildcards))
        self._matcher: Protego | None = None
        self.crawl_delay = crawl_delay
        self.sitemaps = sitemaps

    @property
    def text(self) -> str:
        """The shortest file that says the same, to any agent: parsed again it gives equal rules."""
        delay = "" if self.crawl_delay is None else f"Crawl-delay: {self.crawl_delay:.6f}\n"
        sitemaps = "".join(f"Sitemap: {url}\n" for url in self.sitemaps)
        return f"User-agent: *\n{self._rules}{delay}{sitemaps}"

    @property
    def weight(self) -> int:
        """About how many octets of memory it takes once a URL was requested."""
        return 3 * len(self._rules) + self._steps[0] * _RULE_OCTETS

    def allows(self, url: str | bytes) -> bool:
        """Return whether *url* may be requested. The file itself always may."""
        if not self._rules:
            return True
        plain = _SPELLED_URL.fullmatch(url) if isinstance(url, str) else None
        target = _target(url) if plain is None else plain[1]
        if target == "/robots.txt" or target.startswith("/robots.txt%3F"):
            return True
        if self._steps[1] and self.steps(target) > MOST_STEPS:
            return False
        matcher = self._matcher
        if matcher is None:
            # A tilde is left alone by protego, a percent sign is not; what is spelled has no tilde.
            matcher = self._matcher = Protego.parse("User-agent: *\n" + self._rules.replace("%", "~"))
        path = target.replace("%", "~")
        # Read by itself, a path that begins with two slashes would name a host.
        return matcher.can_fetch("http://host" + path if path.startswith("//") else path, "*")

    def steps(self, target: str) -> int:
        """Return how many comparisons of characters *target*, a path spelled here, takes at the most."""
        rules, wildcards = self._steps
        return rules + wildcards * len(target)

    def fold(self) -> None:
        """Give back the memory that comparing takes; the next URL takes it again."""
        self._matcher = None

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same."""
        return isinstance(other, RobotsRules) and self._key() == other._key()

    def __hash__(self) -> int:
        """Hash what it says."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Show how much it says."""
        delay, sitemaps = self.crawl_delay, len(self.sitemaps)
        return f"RobotsRules({self._steps[0]} rules, crawl_delay={delay}, {sitemaps} sitemaps)"

    def _key(self) -> tuple[str, float | None, tuple[str, ...]]:
        return self._rules, self.crawl_delay, self.sitemaps


def parse_robots(body: bytes, *, agent: str | bytes) -> RobotsRules:
    """Return what the robots.txt file *body* says to *agent*, a product token or a User-Agent."""
    token = product_token(agent)
    # What is said to us by name, and what to everybody.
    ours, everybodys = _Group(), _Group()
    groups: list[_Group] = []
    sitemaps: dict[str, None] = {}
    still_named = False
    for directive, value in _directives(body):
        if directive is _Directive.USER_AGENT:
            if not still_named:
                groups, still_named = [], True
            group = everybodys if _is_everybody(value) else ours if _is_named(value, token) else None
            if group is not None and group not in groups:
                group.is_there = True
                groups.append(group)
        elif directive is _Directive.SITEMAP:
            if value and len(sitemaps) < MOST_SITEMAPS:
                sitemaps[value.decode("utf-8", "replace")] = None
        elif directive is _Directive.CRAWL_DELAY:
            # It is not a rule: names that follow it still belong to the group, but not to this delay.
            _set_delay(groups, value)
        else:
            still_named = False
            for group in groups:
                group.rules.append((directive is _Directive.ALLOW, value))
    chosen = ours if ours.is_there else everybodys
    return RobotsRules(tuple(chosen.rules), crawl_delay=chosen.crawl_delay, sitemaps=tuple(sitemaps))


class _Directive(Enum):
    USER_AGENT = "u"
    ALLOW = "a"
    DISALLOW = "d"
    CRAWL_DELAY = "c"
    SITEMAP = "s"


_INITIALS = {ord(directive.value): directive for directive in _Directive}


class _Group:
    """All groups of one name, as one."""

    def __init__(self) -> None:
        self.is_there = False
        self.rules: list[tuple[bool, bytes]] = []
        self.crawl_delay: float | None = None


def _directives(body: bytes) -> Iterator[tuple[_Directive, bytes]]:
    """Yield what each line that has a known directive directs, and its value."""
    for line in _LINE_END.split(_text(body)):
        match = _DIRECTIVE.fullmatch(line.partition(b"#")[0].strip())
        if match is not None:
            name, value, word = match.groups()
            yield _INITIALS[name[0] | 0x20], word if value is None else value


def _text(body: bytes) -> bytes:
    """Return what is read of *body*, in UTF-8 as far as it is text."""
    if len(body) > MOST_PARSED:
        body = body[:MOST_PARSED]
        # "Disallow: /private" must not become "Disallow: /".
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return body.decode("utf-16", "replace").encode("utf-8", "replace")
    mark = _BYTE_ORDER_MARK.match(body)
    return body[mark.end() :] if mark else body


def _is_everybody(name: bytes) -> bool:
    return name == b"*" or name[:2] in (b"* ", b"*\t")


def _is_named(name: bytes, token: bytes) -> bool:
    match = _TOKEN.match(name)
    return bool(token) and match is not None and match[0].lower() == token


def _set_delay(groups: list[_Group], value: bytes) -> None:
    if _SECONDS.fullmatch(value):
        for group in groups:
            group.crawl_delay = round(min(float(value), _LONGEST_DELAY), 6)


def _pattern(written: bytes) -> str:
    """Return a pattern spelled; `*` anywhere and `$` at the end keep their meaning."""
    anchor = "$" if written.endswith(b"$") else ""
    body = written[:-1] if anchor else written
    return _SPELLED_OTHERWISE_IN_PATTERN.sub(_spelling, body).decode("ascii") + anchor


def _target(url: str | bytes) -> str:
    """Return path and query of *url*, spelled."""
    text = _octets(url)
    start = _BEFORE_PATH.match(text)
    path = text[start.end() if start else 0 :].partition(b"#")[0]
    if not path.startswith(b"/"):
        path = b"/" + path
    return _SPELLED_OTHERWISE.sub(_spelling, path).decode("ascii")


def _octets(text: str | bytes) -> bytes:
    return octets(text) if isinstance(text, str) else text


def _spelling(match: re.Match[bytes]) -> bytes:
    return _SPELLINGS[match[0]]


def _spellings() -> Iterator[tuple[bytes, bytes]]:
    """Yield every octet and every escape, with how it is spelled where it is matched."""
    unreserved = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
    for octet in range(256):
        escape = b"%%%02X" % octet
        yield bytes((octet,)), escape
        spelled = bytes((octet,)) if octet in unreserved else escape
        for high, low in product(*({digit.lower(), digit.upper()} for digit in escape[1:].decode())):
            yield f"%{high}{low}".encode(), spelled


_SPELLINGS = dict(_spellings())
