"""Sites whose content is made by scripts, each small and each of another kind, on one loopback server.

`SITES` names each page and a text that only its scripts show. Three are built from npm
(`tests/data/built_sites`), one by a generator of documentation; the others are written by hand in the
manner of what frameworks build: what matters to an archive is what they request, and when.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path

from loopback import DATA

_BUILT = DATA / "built_sites"
_ALL = {
    "/react/": "3 harbours, mounted",
    "/react/tides": "2 tides, loaded when wanted",
    "/vue/": "2 of 3 lit",
    "/svelte/": "2 boats, 19 m in all",
    "/manual/?q=harbour": "2 matching documents",
    "/routes/": "Route settled",
    "/hash/": "Chapter three",
    "/endless/": "Entry 59",
    "/lazy/": "Twelve pictures",
    "/worker/": "From the worker's cache",
    "/search/": "Found: alpha, alphabet",
    "/frame/": "heard Application",
    "/film/": "at 2.0 s of a film; 1048576 bytes, 3 parts",
    "/styled/": "Made of rules",
    "/modules/": "Island 1 awake",
    "/stream/": "Rows: 200",
}
_SHORT = ("/react/", "/vue/", "/svelte/", "/endless/", "/lazy/", "/worker/", "/search/")
SITES = {
    path: text for path, text in _ALL.items() if path in _SHORT or "AMICRAWL_BROWSER_LONG" in os.environ
}
"""By path, a text that is there once its scripts have run; all with `make test-replay`."""

_SHELL = """<!doctype html><meta charset=utf-8><title>{title}</title>
<body style='font: 16px monospace'>{body}"""
_SCRIPTS = {
    # A router over the history, with data of each view, as frameworks do it.
    "routes": """
      const views = {"/routes/": "home", "/routes/about": "about"};
      async function show() {
        const view = views[location.pathname] || "home";
        const data = await (await fetch("/routes/api/" + view + ".json")).json();
        document.body.innerHTML = `<h1>${data.title}</h1><nav><a href="/routes/about">About</a></nav>
          <ul>${data.rows.map((row) => `<li>${row}</li>`).join("")}</ul><p>Route settled</p>`;
        document.querySelector("a").onclick = (event) => {
          event.preventDefault(); history.pushState({}, "", event.target.href); show();
        };
      }
      addEventListener("popstate", show); show();""",
    "hash": """
      const names = ["one", "two", "three"];
      const seen = {};
      async function show() {
        const name = location.hash.slice(2) || "three";
        seen[name] ||= await (await fetch("/hash/" + name + ".txt")).text();
        main.innerHTML = `<h1>${seen[name]}</h1>`
          + names.map((each) => `<a href="#/${each}">${each}</a> `).join("");
      }
      const main = document.body.appendChild(document.createElement("main"));
      addEventListener("hashchange", show); show();""",
    "endless": """
      let next = 0, busy = false;
      async function more() {
        if (busy || next >= 3) return;
        busy = true;
        const rows = await (await fetch(`/endless/page?n=${next++}`)).json();
        for (const row of rows) {
          document.body.append(Object.assign(document.createElement("p"), {innerText: row}));
        }
        busy = false;
        watcher.unobserve(end); document.body.append(end); watcher.observe(end);
      }
      const end = document.body.appendChild(document.createElement("hr"));
      const watcher = new IntersectionObserver((seen) => {
        if (seen.some((each) => each.isIntersecting)) more();
      });
      watcher.observe(end);""",
    "lazy": """
      document.body.innerHTML = "<h1>Twelve pictures</h1>" + [...Array(12).keys()].map((n) =>
        `<p style="height:300px"><img loading=lazy width=200 height=200 src="/lazy/${n}.png">`)
        .join("");""",
    "worker": """
      (async () => {
        const noted = navigator.serviceWorker.register("/worker/sw.js", {scope: "/worker/"});
        const ready = noted.then(() => navigator.serviceWorker.ready);
        // Without its worker the page requests the data itself.
        await Promise.race([ready, new Promise((done) => setTimeout(done, 2000))]).catch(() => 0);
        document.body.append((await (await fetch("/worker/data.json")).json()).text);
      })();""",
    "search": """
      document.body.innerHTML = "<form><input name=q value=alpha></form><p id=found></p>";
      async function search(q) {
        const got = await fetch("/search/api", {method: "POST", body: JSON.stringify({q}),
          headers: {"Content-Type": "application/json"}});
        found.innerText = "Found: " + (await got.json()).join(", ");
      }
      document.querySelector("form").onsubmit = (event) => { event.preventDefault(); };
      search("alpha");""",
    "frame": """
      document.body.innerHTML =
        "<h1>Around</h1><iframe src='/frame/app.html' width=400 height=200></iframe>";
      window.addEventListener("message", (event) => { document.body.append(event.data); });""",
    "film": """
      document.body.innerHTML = "<video muted preload=auto src=/film/film.webm></video><p>";
      const film = document.querySelector("video");
      const seek = new Promise((done) => { film.onseeked = done; film.onerror = done; });
      film.onloadedmetadata = () => { film.currentTime = 2; };
      (async () => {
        let size = 0, parts = 0;
        for (const range of ["bytes=0-99999", "bytes=100000-599999", "bytes=600000-"]) {
          const got = await fetch("/film/film.bin", {headers: {Range: range}});
          size += (await got.arrayBuffer()).byteLength; parts += 1;
        }
        await seek;
        document.querySelector("p").append(
          `at ${film.currentTime.toFixed(1)} s of a film; ${size} bytes, ${parts} parts`);
      })();""",
    "styled": """
      const sheet = document.head.appendChild(document.createElement("style")).sheet;
      sheet.insertRule("@font-face { font-family: made; src: url(/styled/face.woff2) }");
      sheet.insertRule(".c1 { background: url(/styled/tile.png); width: 300px; height: 200px; }");
      sheet.insertRule(".c1:hover { color: red }");
      document.body.innerHTML =
        "<div class=c1 style='font-family: made, monospace'>Made of rules</div>";""",
    "stream": """
      (async () => {
        const reader = (await fetch("/stream/rows.ndjson")).body.getReader();
        let text = "";
        for (let part; !(part = await reader.read()).done;) text += new TextDecoder().decode(part.value);
        document.body.append("Rows: " + text.trim().split("\\n").map(JSON.parse).length);
      })();""",
}
_HARBOURS = {"Saltby": 9, "Morrow": 12, "Gannet": 4}
_FILES = {
    "/react/api/harbours.json": json.dumps(
        [
            {"name": name, "depth": depth}
            for name, depth in (("Saltby", 9), ("Morrow", 12), ("Gannet", 4))
        ]
    ),
    "/react/api/tides.json": "[3, 9]",
    "/vue/api/buoys.json": json.dumps(
        [{"name": name, "lit": name != "Mole"} for name in ("Rock", "Mole", "Ferry")]
    ),
    "/vue/api/log.json": '{"entries": 41}',
    "/routes/api/home.json": '{"title": "Home", "rows": ["one", "two"]}',
    "/routes/api/about.json": '{"title": "About", "rows": ["three"]}',
    **{f"/hash/{name}.txt": f"Chapter {name}" for name in ("one", "two", "three")},
    "/worker/sw.js": """
      self.addEventListener("install", () => self.skipWaiting());
      self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
      self.addEventListener("fetch", (event) => {
        if (!event.request.url.endsWith(".json")) return;
        event.respondWith(caches.open("data").then(async (kept) => {
          const found = await kept.match(event.request);
          if (found) return found;
          const got = await fetch(event.request);
          await kept.put(event.request, got.clone());
          return got;
        }));
      });""",
    "/worker/data.json": '{"text": "From the worker\'s cache"}',
    "/frame/app.html": """<body><script>
      fetch("/frame/app.json").then((got) => got.json()).then((data) => {
        document.body.innerText = data.text; parent.postMessage(" heard " + data.text, "*");
      });</script>""",
    "/frame/app.json": '{"text": "Application"}',
    "/stream/rows.ndjson": "".join(f'{{"n": {n}}}\n' for n in range(200)),
    "/modules/island.js": """
      import {wake} from "./wake.js";
      for (const [n, each] of [...document.querySelectorAll("x-island")].entries()) wake(n, each);""",
    "/modules/wake.js": """
      export function wake(n, each) {
        const url = new URL("./data.json?n=" + n, import.meta.url);
        fetch(url).then((got) => got.json()).then((data) => { each.innerHTML = "<p>" + data.text; });
      }""",
}


_PAGES = ("/", ".html", "about", "react", "tides")
_TYPES = {
    "js": "text/javascript", "json": "application/json", "png": "image/png", "css": "text/css",
    "svg": "image/svg+xml", "woff2": "font/woff2", "webm": "video/webm",
}  # fmt: skip


def respond(head: bytes) -> bytes:
    """Return the response to the request *head*."""
    method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
    path, _, query = target.partition("?")
    made = _made(path, query, method)
    if made is None:
        return _response(b"none", "text/plain", status="404 Not Found")
    body = made if isinstance(made, bytes) else made.encode()
    if found := re.search(rb"\r\n[Rr]ange: bytes=(\d+)-(\d*)", head):
        first, last = int(found[1]), int(found[2] or len(body) - 1)
        span = f"Content-Range: bytes {first}-{last}/{len(body)}"
        return _response(body[first : last + 1], "video/mp4", span, status="206 Partial Content")
    otherwise = "text/html; charset=utf-8" if path.endswith(_PAGES) else "text/plain"
    kind = _TYPES.get(path.rpartition(".")[2], otherwise)
    if kind == "text/javascript":
        return _response(gzip.compress(body, mtime=0), kind, "Content-Encoding: gzip")
    return _response(body, kind)


def _made(path: str, query: str, method: str) -> str | bytes | None:
    name = path.split("/")[1]
    if (made := _made_by_others(name, path)) is not None:
        return made
    if path == "/":
        return _SHELL.format(title="all", body="".join(f"<a href={each}>{each}</a>" for each in SITES))
    if path == "/modules/":
        islands = "<x-island></x-island>" * 2 + "<script type=module src=/modules/island.js></script>"
        return _SHELL.format(title=name, body=islands)
    if path in {f"/{each}/" for each in _SCRIPTS} or path == "/routes/about":
        return _SHELL.format(title=name, body=f"<script src=/{name}/app.js></script>")
    if path == f"/{name}/app.js":
        return _SCRIPTS.get(name)
    if path == "/modules/data.json":
        return json.dumps({"text": f"Island {query.removeprefix('n=')} awake"})
    if path == "/endless/page":
        first = 20 * int(query.removeprefix("n="))
        return json.dumps([f"Entry {n}" for n in range(first, first + 20)])
    if path == "/search/api":
        return json.dumps(["alpha", "alphabet"]) if method == "POST" else None
    if path == "/svelte/api/search":
        boats = {"found": [{"name": "Anna", "metres": 7}, {"name": "Marga", "metres": 12}]}
        return json.dumps(boats) if method == "POST" else None
    if path == "/film/film.bin":
        return bytes(1 << 20)
    if path == "/film/film.webm":
        return (_BUILT / "film.webm").read_bytes()
    if path == "/styled/face.woff2":
        return next(body for file, body in _built("react").items() if file.endswith(".woff2"))
    if path.endswith(".png"):
        return picture(sum(path.encode()) % 200)
    return _FILES.get(path)


def _made_by_others(name: str, path: str) -> bytes | None:
    """Return the file at *path* of a site that was built; None for none."""
    if name == "manual":
        return _manual().get(path.removeprefix("/manual/") or "index.html")
    if (_BUILT / f"{name}.zip").exists():
        views = {f"/{name}/": "index.html", "/react": "index.html", "/react/tides": "index.html"}
        return _built(name).get(views.get(path, path.removeprefix(f"/{name}/")))
    return None


@cache
def _built(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(_BUILT / f"{name}.zip") as file:
        return {each: file.read(each) for each in file.namelist()}


@cache
def _manual() -> dict[str, bytes]:
    """Return a manual of three pages, made by MkDocs, whose search runs in a worker of the browser."""
    with tempfile.TemporaryDirectory() as place:
        home, built = Path(place), Path(place) / "site"
        (home / "docs").mkdir()
        for page, text in _MANUAL.items():
            (home / "docs" / f"{page}.md").write_text(f"# {page.title()}\n\n{text}\n")
        (home / "mkdocs.yml").write_text(
            "site_name: Manual\nuse_directory_urls: false\nplugins: [search]\n"
            "theme:\n  name: material\n  font: false\n"
        )
        subprocess.run(
            [sys.executable, "-m", "mkdocs", "-q", "build"], cwd=home, check=True,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True,
        )  # fmt: skip
        return {
            path.relative_to(built).as_posix(): path.read_bytes()
            for path in built.rglob("*")
            if path.is_file()
        }


_MANUAL = {
    "index": "What is here.",
    "pilots": "Pilots know each harbour.",
    "lights": "A light is at the mouth of a harbour.",
}


def picture(shade: int) -> bytes:
    """Return a PNG of 8 by 8 pixels in a shade of grey."""
    rows = b"".join(b"\0" + bytes((shade + 5 * line,)) * 8 for line in range(8))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    made = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


def _response(body: bytes, kind: str, *fields: str, status: str = "200 OK") -> bytes:
    lines = "".join(f"{field}\r\n" for field in fields)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
