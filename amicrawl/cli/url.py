"""`amicrawl url`: what a URL is called here, and why it is refused.

With `--json` one object a line: the input (`url`, or `url_hex` where it is not UTF-8, with `base` and
`policy` where given), `grouping_mode`, `ok`, then `canonical`, `host`, `grouping`, `hostkey`, `pathkey`,
and `canonical_of_canonical` where that differs; or `reason` and, if the URL can be fetched all the same,
the five of its extended form under `extended`; last `surt`.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from amicrawl.errors import InputError, UsageError
from amicrawl.terminal import harmless
from amicrawl.urls import (
    DEFAULT_POLICY,
    Canonical,
    Grouping,
    Policy,
    Refused,
    canonical_form,
    canonicalize,
    host_key,
    path_key,
    resolve,
    surt,
)
from amicrawl.urls.octets import octets, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KEY_LISTS = ("query_allow", "query_deny")
_FOLDINGS = ("fold_trailing_slash", "fold_index_file", "fold_case", "collapse_slashes")
_LABELS = {
    "canonical": "canonical form",
    "host": "host",
    "grouping": "host group",
    "hostkey": "host key",
    "pathkey": "path key",
}


class Question(NamedTuple):
    """A URL, and by which rules it is read."""

    url: str
    base: str | None = None
    policy: Policy = DEFAULT_POLICY
    grouping: Grouping = Grouping.REGISTRABLE_DOMAIN


Urls = Annotated[list[str] | None, typer.Argument(metavar="URL", help="URLs; - reads them, one a line.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
JsonInput = Annotated[
    bool,
    typer.Option(
        "--json-input",
        help="With -: a line is an object with url or url_hex, and base, policy, grouping_mode.",
    ),
]
Base = Annotated[str | None, typer.Option(help="The page on which the URLs are links.")]
FullHost = Annotated[bool, typer.Option("--full-host", help="Group by host, not by registrable domain.")]


def url(
    urls: Urls = None,
    *,
    as_json: AsJson = False,
    json_input: JsonInput = False,
    base: Base = None,
    full_host: FullHost = False,
) -> None:
    """Show the canonical form, host, group, keys and SURT of each URL, or why it is refused.

    Example: amicrawl url HTTP://Example.com:80/a/../b
    """
    if not urls:
        raise UsageError("No URL was given. Name one or more, or - to read them from standard input.")
    grouping = Grouping.FULL_HOST if full_host else Grouping.REGISTRABLE_DOMAIN
    for question in _questions(urls, Question("", base, Policy(), grouping), json_input=json_input):
        answer = answer_to(question)
        typer.echo(json.dumps(answer) if as_json else "\n".join(_readable(question, answer)))


def _questions(urls: Iterable[str], asked: Question, *, json_input: bool) -> Iterator[Question]:
    for given in urls:
        if given != "-":
            yield asked._replace(url=given)
            continue
        for number, line in enumerate(sys.stdin.buffer, 1):
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            yield _read(text, number) if json_input else asked._replace(url=text_of(text))


def _read(line: bytes, number: int) -> Question:
    """Read one question from a JSON object; raises InputError for anything else."""
    try:
        fields = json.loads(line)
        written = bytes.fromhex(fields["url_hex"]) if "url_hex" in fields else fields["url"]
        base, policy = fields.get("base"), fields.get("policy", {})
        return Question(
            url=text_of(written),
            base=None if base is None else text_of(base),
            policy=Policy(
                query_allow=frozenset(map(text_of, policy.get("query_allow", ()))),
                query_deny=frozenset(map(text_of, policy.get("query_deny", ()))),
                **{name: bool(policy.get(name)) for name in _FOLDINGS},
            ),
            grouping=Grouping[fields.get("grouping_mode", "registrable_domain").upper()],
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"Line {number} of standard input is not an object with url or url_hex ({error})."
        ) from error


def answer_to(question: Question) -> dict[str, Any]:
    """Return all there is to say about a URL, as plain values."""
    url, base, policy, grouping = question
    try:
        answer: dict[str, Any] = {"url": url.encode().decode()}
    except UnicodeEncodeError:
        answer = {"url_hex": octets(url).hex()}
    answer |= _given(question)
    form = canonicalize(url, base=base, policy=policy)
    answer["ok"] = isinstance(form, Canonical)
    if isinstance(form, Refused):
        answer["reason"] = str(form.reason)
        extended = canonical_form(url, base=base, policy=policy)
        if isinstance(extended, Canonical):
            answer["extended"] = _identity(extended, grouping)
    else:
        answer |= _identity(form, grouping)
        again = canonicalize(form.url, policy=policy)
        spelled = "(rejected)" if isinstance(again, Refused) else again.url
        if spelled != form.url:
            answer["canonical_of_canonical"] = spelled
    answer["surt"] = surt(url if base is None else resolve(base, url))
    return answer


def _given(question: Question) -> dict[str, Any]:
    """Return what was asked besides the URL, as far as it is not the default."""
    given: dict[str, Any] = {} if question.base is None else {"base": question.base}
    policy: dict[str, Any] = {
        name: sorted(keys) for name in _KEY_LISTS if (keys := getattr(question.policy, name))
    }
    policy |= {name: True for name in _FOLDINGS if getattr(question.policy, name)}
    if policy:
        given["policy"] = policy
    given["grouping_mode"] = question.grouping.name.lower()
    return given


def _identity(form: Canonical, grouping: Grouping) -> dict[str, str]:
    group = grouping.group(form.host)
    return {
        "canonical": form.url,
        "host": form.host,
        "grouping": group,
        "hostkey": f"0x{host_key(group):016x}",
        "pathkey": f"0x{path_key(form.url):016x}",
    }


def _readable(question: Question, answer: dict[str, Any]) -> Iterator[str]:
    yield harmless(question.url)
    if "reason" in answer:
        yield f"  refused         {answer['reason']}"
        if "extended" in answer:
            yield "  by extension, because it can be fetched:"
    shown = answer if answer["ok"] else answer.get("extended", {})
    for name, label in _LABELS.items():
        if name in shown:
            yield f"  {label:<15} {shown[name]}"
    if "canonical_of_canonical" in answer:
        yield f"  its own form    {answer['canonical_of_canonical']}"
    yield f"  {'SURT':<15} {harmless(answer['surt'])}"
