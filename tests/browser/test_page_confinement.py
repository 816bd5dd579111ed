"""Nothing leaves a browser but through the proxy: what Chromium requires of the kernel."""

import re
import shutil
from pathlib import Path

import pytest
from archive_reading import records, rows
from browser.browsing_site import crawl_pages, needs_chromium, path_of, response
from loopback import RawServer, free_port

pytestmark = needs_chromium

_CONNECTS = re.compile(
    r"connect\(\d+<TCP[^>]*>, \{sa_family=AF_INET6?, (?:sin_port|sin6_port)=htons\((\d+)\)"
    r".*?(?:inet_addr\(|inet_pton\(AF_INET6, )\"([^\"]+)\""
)
_SENDS = re.compile(r"(?:sendto|sendmsg|sendmmsg)\(\d+<(?:UDP|RAW|ICMP|PING)[^>]*>")
_TRIES = """<!doctype html><title>tries</title>
<link rel=dns-prefetch href=//prefetched.example.org><link rel=preconnect href=https://192.0.2.7>
<link rel=prefetch href=https://192.0.2.8/prefetched>
<a href=/ ping=http://192.0.2.9/ping id=ping>x</a><p id=said></p>
<script>
const said = [];
const attempt = (name, act) => { try { act(); } catch (error) { said.push(name + ": " + error.name); } };
attempt("stun", () => {
  const peer = new RTCPeerConnection({iceServers: [{username: "u", credential: "c",
    urls: ["stun:192.0.2.1:3478", "turn:192.0.2.1:3478?transport=tcp"]}]});
  peer.createDataChannel("a");
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
});
attempt("transport", () => { new WebTransport("https://192.0.2.2:4433/"); });
attempt("socket", () => { new WebSocket("ws://192.0.2.3:8080/"); });
attempt("beacon", () => { navigator.sendBeacon("http://192.0.2.4/beacon", "x"); });
attempt("worker", () => { navigator.serviceWorker.register("/worker.js").catch(() => 0); });
attempt("download", () => {
  const a = document.createElement("a"); a.href = "/file"; a.download = "f"; a.click();
});
attempt("window", () => { window.open("http://192.0.2.5/window"); window.open("/window"); });
attempt("file", () => { fetch("file:///etc/hostname").catch(() => 0); });
attempt("chrome", () => { location.href = "chrome://settings/"; });
attempt("mail", () => { location.href = "mailto:a@example.org"; });
attempt("ftp", () => { fetch("ftp://192.0.2.6/").catch(() => 0); });
for (const port of PORTS) fetch("http://127.0.0.1:" + port + "/").catch(() => 0);
attempt("geo", () => { navigator.geolocation.getCurrentPosition(() => 0); });
new Image().src = "https://imaged.example.net:8443/";
document.getElementById("ping").click();
alert("dialog");
</script>"""


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_chromium_connects_to_the_proxy_and_to_nothing_else(tmp_path: Path) -> None:
    calls, closed = tmp_path / "calls", free_port()
    watched = tmp_path / "watched-chromium"
    watched.write_text(
        f"#!/bin/sh\nexec strace -f -qq -yy -o {calls} -s 8 -e trace=connect,sendto,sendmsg,sendmmsg "
        f'{shutil.which("chromium")} "$@"\n'
    )
    watched.chmod(0o755)
    page = _TRIES.replace("PORTS", f"[{closed}]").encode()

    def site(head: bytes) -> bytes:
        if path_of(head) == "/":
            return response(page)
        if path_of(head) == "/worker.js":
            return response(b"fetch('http://192.0.2.10/from-worker');", "text/javascript")
        return response(b"file", "application/octet-stream", "Content-Disposition: attachment")

    out = tmp_path / "out"
    with RawServer(site) as server:
        done = crawl_pages(
            f"{server.url}/", out,
            {"AMICRAWL_BROWSER_PATH": str(watched), "AMICRAWL_CONNECT_TIMEOUT": "2",
             "AMICRAWL_MAX_RETRIES": "0", "AMICRAWL_ALLOW_PRIVATE": "127.0.0.1/32"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = calls.read_text()
    went = {(address, int(port)) for port, address in _CONNECTS.findall(said)}
    assert [address for address, _ in went] == ["127.0.0.1"]
    # Chromium connects UDP sockets to find out which addresses it has; none of them sends anything.
    assert _SENDS.findall(said) == []
    errors = {row["url"]: row["error"] for row in rows(out) if not row["status"]}
    refused = ("refused-by-crawl", "address-refused")
    assert errors["http://192.0.2.4/beacon"].startswith(refused)
    assert all(row["page"] for row in rows(out) if row["url"].endswith("/worker.js"))
    info = next(
        each.content_stream().read()
        for each in records(out)
        if each.rec_headers["WARC-Target-URI"] == f"urn:pageinfo:{server.url}/"
    )
    assert b"a dialog: alert: dialog" in info
    assert b"a window" in info
