"""How often the language of a page is right: `python -m benchmarks.languages [--trees PATH]`.

Pages in sixty languages are made of the Universal Declaration of Human Rights
(`tests/data/corpora/languages`), in shapes that pages of the web have. With `--trees`, which `make
collection-demo` leaves in `build/manuals/trees`, the files of the manuals follow, whose language is that
of their package or directory. Much of Debian's handbook is not translated: a page of which two
thirds of the text are those of the English page, listings included, is English, and one of which more
than a third are is in two languages, of which both have to be found. Standard output has, for each shape
and tree, how many pages there are, of how many the languages are right, and which are taken for which.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.index.sidecar.detectors import Characteriser, installed_detectors
from amicrawl.archive.index.sidecar.findings import LANGUAGES, added_fields, encode_block, parse_block
from amicrawl.archive.index.sidecar.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

DECLARATION = Path(__file__).parent.parent / "tests/data/corpora/languages/declaration.jsonl"
_MENU = "Home About us News Products Support Contact Search Sign in"
_OLDER = {
    "cp1250": "ces hrv hun pol ron slk slv",
    "cp1251": "bel bul mkd rus srp ukr",
    "cp1252": "afr cat dan deu eus fin fra gle glg ind isl ita msa nld nor por spa swa swe",
    "cp1253": "ell",
    "cp1254": "tur",
    "cp1255": "heb",
    "cp1256": "ara",
    "cp1257": "est lav lit",
    "cp1258": "vie",
    "cp874": "tha",
    "euc_kr": "kor",
    "gb18030": "zho",
    "shift_jis": "jpn",
}
_LEGACY = {language: codec for codec, languages in _OLDER.items() for language in languages.split()}


class MadePage(NamedTuple):
    """A page, and what is true of it."""

    languages: tuple[str, ...]
    """ISO 639-3: one, which has to be found first, or two, which have to be found."""
    subject: Subject


def declarations() -> dict[str, list[str]]:
    """Return the first eight articles of the Declaration by ISO 639-3 code, as CLD2's are written."""
    rows = [json.loads(line) for line in DECLARATION.read_text().splitlines()]
    return {row["language"]: row["articles"] for row in rows}


def shapes() -> dict[str, list[MadePage]]:
    """Return pages of sixty languages by the name of their shape."""
    made: dict[str, list[MadePage]] = {
        name: []
        for name in (
            "nothing declared",
            "one sentence or two",
            "template in English",
            "older charset",
            "half in English",
        )
    }
    declared = declarations()
    for language, articles in declared.items():
        whole = _page(articles)
        made["nothing declared"].append(_made(language, whole.encode()))
        made["one sentence or two"].append(_made(language, _page(articles[:1]).encode()))
        # What a template leaves in: its menu, and a language that is nobody's.
        english = _page(articles, attributes=' lang="en"', above=f"<nav>{_MENU}</nav>")
        made["template in English"].append(_made(language, english.encode()))
        if language in _LEGACY:
            octets = whole.encode(_LEGACY[language], "xmlcharrefreplace")
            made["older charset"].append(_made(language, octets))
        if language != "eng":
            half = _page([*articles[:4], *declared["eng"][:4]]).encode()
            made["half in English"].append(_made(language, half, "eng"))
    return made


def _page(articles: list[str], *, attributes: str = "", above: str = "") -> str:
    text = "".join(f"<p>{each}</p>\n" for each in articles)
    return f"<!DOCTYPE html>\n<html{attributes}><head></head><body>{above}\n{text}</body></html>\n"


def _made(language: str, content: bytes, *others: str) -> MadePage:
    return MadePage((language, *others), Subject(content, url="http://www.example/", status=200))


_HANDBOOK = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "ar-MA=ara ca-ES=cat cs-CZ=ces da-DK=dan de-DE=deu el-GR=ell en-US=eng es-ES=spa fa-IR=fas "
        "fr-FR=fra hr-HR=hrv id-ID=ind it-IT=ita ja-JP=jpn ko-KR=kor nb-NO=nor nl-NL=nld pl-PL=pol "
        "pt-BR=por ro-RO=ron ru-RU=rus sv-SE=swe tr-TR=tur vi-VN=vie zh-CN=zho zh-TW=zho",
    )
)
_PACKAGES = {
    "rust-doc": "eng",
    "postgresql-doc-15": "eng",
    "python3.11-doc": "eng",
    "debian-reference-ja": "jpn",
    "debian-faq-ru": "rus",
    "maint-guide-ru": "rus",
}
_MOST = 2 / 3
_HIDDEN = frozenset({"script", "style"})
_BLOCKS = frozenset(
    {"p", "pre", "li", "dt", "dd", "div", "td", "th", "h1", "h2", "h3", "h4", "h5", "title"}
)
_LOCALE = re.compile(r"/([a-z]{2}-[A-Z]{2})/")


def tree_pages(trees: Path) -> Iterator[tuple[str, MadePage]]:
    """Yield the name and the page of every HTML file below *trees* whose language is known."""
    for tree in sorted(each for each in trees.iterdir() if each.is_dir()):
        for path in sorted(tree.rglob("*.html")):
            if path.is_symlink():
                continue
            content, name = path.read_bytes(), tree.name
            if name == "debian-handbook":
                languages = _of_handbook(path, content)
                name += ", two languages" * (len(languages) == 2)
            else:
                languages = (_PACKAGES[name],) if name in _PACKAGES else ()
            if languages:
                url = f"http://manuals.example/{path.relative_to(trees)}"
                subject = Subject(content, url=url, status=200, content_type="text/html")
                yield name, MadePage(languages, subject)


def _of_handbook(path: Path, content: bytes) -> tuple[str, ...]:
    locale = _LOCALE.search(str(path))
    if locale is None or locale[1] not in _HANDBOOK:
        return ()
    language = _HANDBOOK[locale[1]]
    english = Path(str(path).replace(locale[0], "/en-US/"))
    if language == "eng" or not english.exists():
        return (language,)
    shared = _shared_text(content, english.read_bytes())
    if shared > _MOST:
        return ("eng",)
    return (language,) if shared < 1 - _MOST else (language, "eng")


class _Blocks(HTMLParser):
    """The blocks of text of a page; of listings the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [""]
        self._hidden = 0
        self._listings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._hidden += tag in _HIDDEN
        self._listings += tag == "pre"
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN and self._hidden > 0
        self._listings -= tag == "pre" and self._listings > 0
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        first, *others = data.split("\n") if self._listings else [data]
        self.blocks[-1] += first
        self.blocks += others


def _shared_text(page: bytes, other: bytes) -> float:
    """Return what part of the text of *page*, by bytes, consists of blocks that *other* has, too."""
    known = set(_text_blocks(other))
    sizes = [(len(each.encode()), each in known) for each in _text_blocks(page)]
    return sum(size for size, is_known in sizes if is_known) / max(1, sum(size for size, _ in sizes))


def _text_blocks(page: bytes) -> list[str]:
    parser = _Blocks()
    parser.feed(page.decode("utf-8", "replace"))
    parser.close()
    return [text for each in parser.blocks if (text := " ".join(each.split()))]


class Tally:
    """Pages of one kind, and what they were taken for."""

    def __init__(self) -> None:
        self.pages = 0
        self.right = 0
        self.taken: Counter[str] = Counter()
        """Pages whose languages are wrong, by what they are and what they were taken for."""

    def add(self, page: MadePage, found: tuple[str, ...]) -> None:
        """Count *page*, whose languages are said to be *found*."""
        self.pages += 1
        is_right = found[:1] == page.languages or set(page.languages) == set(found)
        self.right += is_right
        if not is_right:
            # Of one language, the first counts.
            said = found if len(page.languages) == 2 else found[:1]
            self.taken[f"{','.join(page.languages)} as {','.join(said) or 'none'}"] += 1

    def figures(self) -> dict[str, Any]:
        """Return the counts for a report."""
        return {"pages": self.pages, "right": self.right, "taken": dict(self.taken.most_common())}


def languages_found(characteriser: Characteriser, page: MadePage) -> tuple[str, ...]:
    """Return the codes of `languages` in the CDXJ line of *page*."""
    block = parse_block(encode_block(characteriser.findings(page.subject)))
    listed = added_fields({LANGUAGES: block.get(LANGUAGES)}).get("languages", "")
    return tuple(listed.split(",")) if listed else ()


def main() -> None:
    """Print the report as JSON."""
    parser = argparse.ArgumentParser(description="How often the language of a page is right.")
    parser.add_argument("--trees", type=Path, help="unpacked packages of manuals")
    requested = parser.parse_args()
    characteriser = Characteriser(installed_detectors(["fido", "libmagic", "soft-404"]))
    tallies: dict[str, Tally] = {}
    for name, pages in shapes().items():
        tallies[name] = Tally()
        for page in pages:
            tallies[name].add(page, languages_found(characteriser, page))
    for name, page in tree_pages(requested.trees) if requested.trees else ():
        tallies.setdefault(name, Tally()).add(page, languages_found(characteriser, page))
    json.dump({name: tally.figures() for name, tally in tallies.items()}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
