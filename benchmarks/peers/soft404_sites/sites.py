"""Sites of Flask, Django and Otter Wiki whose error pages come with status 200, requested in-process.

Standard input is JSON: `texts`, a list of `{"title": ..., "paragraphs": [...]}`, and `probe`, the name
of a file that no site has. Standard output has a line of JSON for each response: the site, its kind,
path, what is true of it (`page`, `missing`, or `probe`), status, `Location`, body.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.http import HttpResponse, HttpResponseRedirect
from django.test import Client, override_settings
from django.urls import re_path
from flask import Flask, abort, request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MENU = "<nav><a href='/'>Home</a> <a href='/new'>New</a> <a href='/about'>About</a></nav>"
_HARD = (
    (
        "Lost and found",
        ["What was not found by its owner within a year is given away. Ask at the desk."],
    ),
    (
        "What a 404 means",
        ["The server has no page at this address. Check the link, or search the site."],
    ),
    ("Sorry, we are closed", ["The page of opening hours is updated on Monday."]),
    ("Removed articles", ["This list has what is no longer available: nothing at the moment."]),
)
"""Pages that say what error pages say."""


def slug(title: str) -> str:
    """Return *title* as the end of a URL."""
    return (
        "-".join("".join(each if each.isalnum() else " " for each in title.lower()).split())[:60] or "x"
    )


def page(site: str, title: str, paragraphs: Iterable[str], *, more: str = "") -> str:
    """Return a page of *site*."""
    text = "".join(f"<p>{each}</p>" for each in paragraphs)
    return (
        f"<!doctype html><html><head><title>{title} | {site}</title></head><body>{_MENU}"
        f"<h1>{title}</h1>{text}{more}<footer>{site}, terms, privacy, contact</footer></body></html>"
    )


def shop(texts: list[dict[str, Any]]) -> tuple[Any, list[str], list[str]]:
    """Return a shop on Flask whose error handler forgets the status: client, pages, missing ones."""
    app = Flask("shop")
    paths = {
        f"/shop/{number % 5}/{slug(each['title'])}-{number}": each for number, each in enumerate(texts)
    }

    @app.get("/shop/<path:_>")
    def product(_: str) -> str:
        found = paths.get(request.path)
        if found is None:
            abort(404)
        price = f"<p>Price: {len(found['title'])}.90</p><button>Add to cart</button>"
        return page("Riverton Tools", found["title"], found["paragraphs"][:3], more=price)

    @app.errorhandler(404)
    def missing(_: Exception) -> str:
        words = ["We no longer have this product.", "Have a look at what else is in the shop."]
        return page("Riverton Tools", "Product unavailable", words)

    @app.get("/")
    def home() -> str:
        return page("Riverton Tools", "Welcome", ["Tools for house and garden."])

    return (
        app.test_client().get,
        list(paths),
        [f"/shop/{number % 5}/sold-{number}" for number in range(60)],
    )


def _django(name: str) -> Any:
    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=["*"], SECRET_KEY="none", ROOT_URLCONF="", DEBUG=False, LOGGING_CONFIG=None
        )
        django.setup()
    module = ModuleType(name)
    sys.modules[name] = module
    return module


def _django_get(name: str) -> Callable[[str], Any]:
    def get(path: str) -> Any:
        with override_settings(ROOT_URLCONF=name):
            return Client(raise_request_exception=False).get(path)

    return get


def news(texts: list[dict[str, Any]]) -> tuple[Any, list[str], list[str]]:
    """Return a news site on Django whose last route renders the error page, with the path in it."""
    urls = _django("news_urls")
    paths = {
        f"/news/2026/{number % 6 + 1:02}/{slug(each['title'])}/": each
        for number, each in enumerate(texts)
    }

    def story(requested: Any) -> HttpResponse:
        found = paths.get(requested.path)
        if found is None:
            words = [f"There is no story at {requested.path}.", "It may have moved to the archive."]
            return HttpResponse(page("The Courier", "Nothing here", words))
        latest = "".join(f"<li>{each['title']}</li>" for each in texts[len(found["title"]) % 40 :][:5])
        return HttpResponse(
            page("The Courier", found["title"], found["paragraphs"], more=f"<ul>{latest}</ul>")
        )

    urls.urlpatterns = [re_path("", story)]
    missing = [f"/news/2026/{number % 6 + 1:02}/story-{number}/" for number in range(60)]
    return _django_get("news_urls"), list(paths), missing


def forum(texts: list[dict[str, Any]]) -> tuple[Any, list[str], list[str]]:
    """Return a forum on Django that redirects what is missing to its front page."""
    urls = _django("forum_urls")
    paths = {f"/t/{number}": each for number, each in enumerate(texts)}

    def topic(requested: Any) -> HttpResponse:
        found = paths.get(requested.path)
        if requested.path == "/":
            return HttpResponse(
                page("Workbench forum", "Topics", [each["title"] for each in texts[:30]])
            )
        if found is None:
            return HttpResponseRedirect("/")
        posts = [
            f"{name} wrote: {text}" for name, text in zip("ABCDEFG", found["paragraphs"], strict=False)
        ]
        return HttpResponse(page("Workbench forum", found["title"], posts))

    urls.urlpatterns = [re_path("", topic)]
    return _django_get("forum_urls"), list(paths), [f"/t/{number}" for number in range(5000, 5060)]


def wiki(texts: list[dict[str, Any]]) -> tuple[Any, list[str], list[str]]:
    """Return an Otter Wiki behind a cache that sends its error pages with status 200."""
    home = Path(tempfile.mkdtemp())
    repository = home / "repository"
    repository.mkdir()
    names = []
    for number, each in enumerate(texts):
        name = f"{slug(each['title'])[:30]}-{number}"
        names.append(name)
        body = "\n\n".join(each["paragraphs"][:4])
        (repository / f"{name}.md").write_text(f"# {each['title']}\n\n{body}\n")
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "pages"]):
        subprocess.run([*git, *arguments], check=True)
    (home / "settings.cfg").write_text(
        f"REPOSITORY='{repository}'\nSQLALCHEMY_DATABASE_URI='sqlite:///{home}/db.sqlite'\n"
        "SECRET_KEY='0123456789abcdef0123'\nREAD_ACCESS='ANONYMOUS'\n"
    )
    os.environ["OTTERWIKI_SETTINGS"] = str(home / "settings.cfg")
    # Its settings are read when it is imported.
    import_module("otterwiki.views")
    client = import_module("otterwiki.server").app.test_client()
    return client.get, [f"/{name}" for name in names], [f"/absent-{number}" for number in range(60)]


def responses(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each response of each site."""
    texts = [*given["texts"], *({"title": title, "paragraphs": said} for title, said in _HARD)]
    for make in (shop, news, forum, wiki):
        get, present, missing = make(texts)
        folders = sorted({path.rstrip("/").rpartition("/")[0] + "/" for path in (*present, *missing)})
        probes = [f"{folder}{given['probe']}" for folder in folders]
        for truth, paths in (("page", present), ("missing", missing), ("probe", probes)):
            for path in paths:
                response = get(path)
                status = response.status_code
                body = b"".join(response) if hasattr(response, "streaming") else response.data
                yield {
                    "site": make.__name__,
                    "path": path,
                    "truth": truth,
                    # The cache before the wiki knows one status.
                    "status": 200 if make is wiki else status,
                    "location": response.headers.get("Location", ""),
                    "body": body.decode("utf-8", "replace"),
                }


def main() -> None:
    """Write the lines."""
    logging.disable(logging.CRITICAL)
    for each in responses(json.load(sys.stdin)):
        sys.stdout.write(json.dumps(each) + "\n")


if __name__ == "__main__":
    main()
