"""`amicrawl url`: what a URL is called here, and why it is refused.

With `--json` one object a line: the input (`url`, or `url_hex` where it is not UTF-8, with `base`
where given), `grouping_mode`, `ok`, then `canonical`, `host`, `grouping`, `hostkey`, `pathkey`,
and `canonical_of_canonical` where that differs; or `reason` and, if the URL can be fetched all the same,
the five of its extended form under `extended`; last `surt`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.options import AsJson
from amicrawl.errors import UsageError
from amicrawl.terminal import harmless
from amicrawl.urls import (
    Canonical,
    Grouping,
    Refused,
    canonical_form,
    canonicalize,
    host_key,
    octets,
    path_key,
    resolve,
    surt,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LABELS = {
    "canonical": "canonical form",
    "host": "host",
    "grouping": "host group",
    "hostkey": "host key",
    "pathkey": "path key",
}


Urls = Annotated[
    list[str] | None,
    typer.Argument(metavar="URL", help="URLs; - reads them from standard input, one per line."),
]
Base = Annotated[str | None, typer.Option(help="The page on which the URLs are links.")]
FullHost = Annotated[bool, typer.Option("--full-host", help="Group by host, not by registrable domain.")]


def url(
    urls: Urls = None,
    *,
    as_json: AsJson = False,
    base: Base = None,
    full_host: FullHost = False,
) -> None:
    """Show the canonical form, host, group, keys and SURT of each URL, or why it is refused.

    Example: amicrawl url HTTP://Example.com:80/a/../b
    """
    if not urls:
        raise UsageError("No URL was given. Name one or more, or - to read them from standard input.")
    grouping = Grouping.FULL_HOST if full_host else Grouping.REGISTRABLE_DOMAIN
    for given in _given(urls):
        forms = forms_of(given, base=base, grouping=grouping)
        typer.echo(json.dumps(forms) if as_json else "\n".join(_readable(given, forms)))


def _given(urls: Iterable[str]) -> Iterator[str]:
    """Yield *urls*, and in place of a hyphen the lines of standard input."""
    for each in urls:
        if each != "-":
            yield each
            continue
        for line in sys.stdin.buffer:
            yield text_of(line.removesuffix(b"\n").removesuffix(b"\r"))


def forms_of(url: str, *, base: str | None, grouping: Grouping) -> dict[str, Any]:
    """Return the forms and keys of *url*, a link on the page *base*, as plain values."""
    try:
        forms: dict[str, Any] = {"url": url.encode().decode()}
    except UnicodeEncodeError:
        forms = {"url_hex": octets(url).hex()}
    if base is not None:
        forms["base"] = base
    forms["grouping_mode"] = grouping.name.lower()
    form = canonicalize(url, base=base)
    forms["ok"] = isinstance(form, Canonical)
    if isinstance(form, Refused):
        forms["reason"] = str(form.reason)
        extended = canonical_form(url, base=base)
        if isinstance(extended, Canonical):
            forms["extended"] = _identity(extended, grouping)
    else:
        forms |= _identity(form, grouping)
        again = canonicalize(form.url)
        spelled = "(rejected)" if isinstance(again, Refused) else again.url
        if spelled != form.url:
            forms["canonical_of_canonical"] = spelled
    forms["surt"] = surt(url if base is None else resolve(base, url))
    return forms


def _identity(form: Canonical, grouping: Grouping) -> dict[str, str]:
    group = grouping.group(form.host)
    return {
        "canonical": form.url,
        "host": form.host,
        "grouping": group,
        "hostkey": f"0x{host_key(group):016x}",
        "pathkey": f"0x{path_key(form.url):016x}",
    }


def _readable(url: str, forms: dict[str, Any]) -> Iterator[str]:
    yield harmless(url)
    if "reason" in forms:
        yield f"  refused         {forms['reason']}"
        if "extended" in forms:
            yield "  by extension, because it can be fetched:"
    shown = forms if forms["ok"] else forms.get("extended", {})
    for name, label in _LABELS.items():
        if name in shown:
            yield f"  {label:<15} {shown[name]}"
    if "canonical_of_canonical" in forms:
        yield f"  its own form    {forms['canonical_of_canonical']}"
    yield f"  {'SURT':<15} {harmless(forms['surt'])}"
