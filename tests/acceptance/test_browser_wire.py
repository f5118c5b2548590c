"""Pages in Chromium against sites of raw sockets that log both directions: each exchange once, equal byte for byte."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.logging_site import LoggingSite, plain
from tests.support.png import pixels
from tests.support.proxied_runs import assert_equal, table
from tests.support.raw_server import make_certificate

from forked import Forked

OPTIONS = (
    "--browser",
    "--allow-private",
    "--insecure",
    "--tries",
    "1",
    "--rounds",
    "0",
    "--no-sitemaps",
    "--no-robots",
)
QUICK = (*OPTIONS, "--screenshots", "none", "--level", "0")
ZIPPED = gzip.compress(b"document.documentElement.dataset.odd = 'ran';", mtime=0)
ODD = (
    b"HTTP/1.1 200 Fine\r\nX-Name: caf\xe9\r\nX-More: a\r\nX-More: b\r\nContent-Type: text/javascript\r\n"
    b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n%x;ext=1\r\n%b\r\n0\r\n\r\n" % (len(ZIPPED), ZIPPED)
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="red"/></svg>'
ALLOW = "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: *\r\nAccess-Control-Allow-Headers: *\r\n"
PAGE = """<!doctype html><title>rich</title><link rel=stylesheet href=/style.css><script src=/odd.js></script>
<img src=/image.svg><img loading=lazy src=/lazy.svg style="margin-top:4000px">
<picture><source srcset="/small.svg 1x, /large.svg 3x"><img src=/never.svg></picture>
<iframe src=/frame.html></iframe><iframe srcdoc="<img src=/srcdoc.svg>"></iframe>
<iframe src="OTHER/cross.html"></iframe>
<div id=host></div><video src=/media.bin preload=auto></video>
<script>
const svg = (name) => Object.assign(new Image(), {src: '/' + name + '.svg'});
document.getElementById('host').attachShadow({mode: 'closed'}).append(svg('closed'));
new IntersectionObserver((seen, own) => { if (seen[0].isIntersecting) { own.disconnect(); svg('scripted'); } })
  .observe(document.querySelector('[loading=lazy]'));
onload = async () => {
  const form = new FormData();
  form.append('field', 'value'); form.append('file', new Blob(['text']), 'a.txt');
  const steps = [
    () => fetch('/post', {method: 'POST', body: new URLSearchParams({a: '1'})}),
    () => fetch('/multipart', {method: 'POST', body: form}),
    () => fetch('/put', {method: 'PUT', body: 'x'.repeat(300000)}),
    () => fetch('OTHER/preflighted', {method: 'DELETE', headers: {'X-Own': '1'}}),
    () => fetch('/moved'),
    () => fetch('/range', {headers: {Range: 'bytes=1-3'}}),
    () => navigator.sendBeacon('/beacon', 'said'),
    () => new Promise((done) => { const own = new Worker('/worker.js'); own.onmessage = done; }),
    () => navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready),
    () => new Promise((done) => {
      const own = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
      own.onmessage = own.onerror = done;
    }),
    () => { const own = new EventSource('/events'); return new Promise((done) => { own.onmessage = done; }); },
    async () => {
      const read = (await fetch('/stream')).body.getReader();
      await read.read();
      document.body.dataset.first = 'came';
    },
    () => { alert('a'); confirm('b'); document.body.dataset.said = prompt('c', 'default'); },
    () => { window.open('/popup.html'); },
    () => { Object.assign(document.createElement('a'), {href: '/file.zip', download: 'file.zip'}).click(); },
  ];
  for (const step of steps) { try { await step(); } catch (error) { console.error(String(step), String(error)); } }
  history.pushState({}, '', '/history-route');
  document.body.dataset.done = 'yes';
};
</script>
<a href="/linked.html">a link</a>
<form method=post action=/submitted><button>Load more</button></form>
<button onclick="fetch('/deleted')">Delete more</button>
<a href="/logout">Load more</a><button onclick="this.hidden = true; fetch('/more')" type=button>Load more</button>
"""
LAUNCH, PATIENCE_S = Forked, 180


def events(sock: socket.socket, _request: bytes) -> bytes:
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n")
    while sock.recv(1):
        pass
    return b""


def stream(sock: socket.socket, _request: bytes) -> bytes:
    """It goes on only when the page has what came."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    return b"4\r\nlast\r\n0\r\n\r\n"


def websocket(sock: socket.socket, request: bytes) -> bytes:
    key = request.lower().partition(b"sec-websocket-key:")[0]
    given = request[len(key) + len(b"sec-websocket-key:") :].split(b"\r\n", 1)[0].strip()
    accept = base64.b64encode(
        hashlib.sha1(given + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False).digest()
    )
    sock.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        + accept + b"\r\n\r\n\x81\x05hello"
    )  # fmt: skip
    while sock.recv(1):
        pass
    return b""


def answers_of(other: LoggingSite) -> dict[str, Any]:
    page = PAGE.replace("OTHER", other.url(""))
    svg = plain(SVG, "image/svg+xml")
    names = ("image", "lazy", "small", "large", "srcdoc", "closed", "scripted", "inner")
    return {
        "/style.css": plain(b"@import '/imported.css'; body { background: url(/back.svg) }", "text/css"),
        "/imported.css": plain(b"p { color: red }", "text/css"),
        "/back.svg": svg,
        "/odd.js": ODD,
        "/frame.html": plain(b"<iframe src=/nested.html></iframe>", "text/html"),
        "/nested.html": plain(b"<img src=/inner.svg><a href=/in-frame.html>x</a>", "text/html"),
        **{f"/{name}.svg": svg for name in names},
        "/post": plain(b"posted"),
        "/multipart": plain(b"taken"),
        "/put": plain(b"put"),
        "/moved": b"HTTP/1.1 302 Found\r\nLocation: /landed\r\nContent-Length: 0\r\n\r\n",
        "/landed": plain(b"landed"),
        "/beacon": b"HTTP/1.1 204 No Content\r\n\r\n",
        "/worker.js": plain(b"fetch('/of-worker').then(() => postMessage(1))", "text/javascript"),
        "/of-worker": plain(b"for the worker"),
        "/sw.js": plain(b"oninstall = (e) => e.waitUntil(fetch('/of-sw'))", "text/javascript"),
        "/of-sw": plain(b"for the service worker"),
        "/socket": websocket,
        "/events": events,
        "/stream": stream,
        "/more": plain(b"more"),
        "/page": plain(page.encode(), "text/html"),
    }


def exchanges(out: Path) -> list[dict[str, Any]]:
    return [row for row in table(out) if row["record_type"] != "resource"]


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_each_exchange_of_a_rich_page_is_recorded_once(muniment, tmp_path, secure):
    certificate = make_certificate(tmp_path, "site", names="IP:127.0.0.1,IP:127.0.0.2") if secure else None
    out = tmp_path / "out"
    cross = {
        "/cross.html": plain(b"<img src=/of-cross.svg>", "text/html"),
        "/of-cross.svg": plain(SVG, "image/svg+xml"),
        "/preflighted": lambda _sock, request: plain(b"", status="200 OK", more=ALLOW),
    }
    with LoggingSite(cross, certificate, "127.0.0.2") as other, LoggingSite(answers_of(other), certificate) as site:
        done = muniment("crawl", site.url("/page"), "-o", out, *QUICK, "--page-time", "40", "--behavior-time", "8")
        assert done.code == 0, done.stderr
        said = json.loads(muniment("results", site.url("/page"), "-o", out, "--json").stdout)
        saved = muniment("results", site.url("/page"), "-o", out, "--save", tmp_path / "saved")
        assert saved.code == 0
    log = [(one, logged) for one in (site, other) for logged in one.log]
    counts = Counter(one.url(logged.path) + str(logged.received.split(b" ")[0]) for one, logged in log)
    assert {request for request, count in counts.items() if count > 1} == set()
    rows = exchanges(out)
    assert len({row["page_id"] for row in rows} - {""}) == 1
    # what only the engine asked for: candidates that the browser did not choose
    alone = {row["url"].rpartition("/")[2] for row in rows if not row["page_id"]}
    assert alone == {"large.svg", "never.svg"}
    unrecorded = {"/socket"}
    for one, logged in log:
        if logged.path not in unrecorded and logged.path != "/preflighted":
            assert_equal(out, one.url(logged.path), logged)
    assert {row["method"] for row in rows if row["url"] == other.url("/preflighted")} == {"OPTIONS", "DELETE"}
    asked = {logged.path for logged in site.log}
    assert asked >= {
        "/page", "/style.css", "/imported.css", "/back.svg", "/odd.js", "/image.svg", "/lazy.svg", "/scripted.svg",
        "/small.svg", "/frame.html", "/nested.html", "/inner.svg", "/srcdoc.svg", "/closed.svg", "/post", "/multipart",
        "/put", "/moved", "/landed", "/range", "/beacon", "/worker.js", "/of-worker", "/sw.js", "/of-sw", "/socket",
        "/events", "/stream", "/more",
    }  # fmt: skip
    assert not asked & {"/submitted", "/deleted", "/logout", "/popup.html"}
    assert {logged.path for logged in other.log} == {"/cross.html", "/of-cross.svg", "/preflighted"}
    dom = (tmp_path / "saved" / "dom.html").read_text()
    assert 'data-odd="ran"' in dom and 'data-first="came"' in dom and 'data-said="default"' in dom, dom[:300]
    assert {
        site.url(f"/{name}") for name in ("linked.html", "in-frame.html", "popup.html", "file.zip", "history-route")
    } <= set(said["outlinks"])
    assert muniment("check", out).code == 0


def test_private_addresses_are_never_connected_to(muniment, tmp_path):
    out = tmp_path / "out"
    page = """<title>x</title><img src=http://10.255.0.1/img><iframe src=http://169.254.169.254/frame></iframe>
    <iframe src=file:///etc/hostname></iframe><img src=/moved><script>
    new Worker(URL.createObjectURL(new Blob(["fetch('http://192.168.77.1/worker')"])));
    fetch('http://[::ffff:10.0.0.1]/fetch', {mode: 'no-cors'}); navigator.sendBeacon('http://172.16.3.4/beacon', 'x');
    new WebSocket('ws://10.0.0.9/socket'); </script>"""
    answers = {
        "/page": plain(page.encode(), "text/html"),
        "/moved": b"HTTP/1.1 302 Found\r\nLocation: http://10.9.9.9/moved-to\r\nContent-Length: 0\r\n\r\n",
    }
    options = [one for one in QUICK if one != "--allow-private"]
    with LoggingSite(answers) as site:
        assert muniment("crawl", site.url("/page"), "-o", out, *options, "--behaviors", "none").code == 0
    told = json.loads(muniment("results", site.url("/page"), "-o", out, "--json").stdout)
    errors = {one["url"].rpartition("/")[2]: one["error"] for chain in told["requisites"] for one in chain}
    names = ("img", "frame", "worker", "fetch", "beacon", "socket", "moved-to")
    assert {name: errors.get(name) for name in names} == dict.fromkeys(names, "private-address")
    assert {row["url"].rpartition("/")[2] for row in exchanges(out) if row["status"]} <= {
        "page",
        "moved",
        "favicon.ico",
    }


CRUEL = {
    "burns": "<script>addEventListener('load', () => { for (;;); })</script>",
    "alerts": "<script>for (;;) alert(1)</script>",
    "reloads": "<script>location.reload()</script>",
    "frames": "<iframe src=/frames></iframe>",
    "polls": "<script>setInterval(() => fetch('/none'), 100)</script>",
}


def test_cruel_pages_end_in_their_time(muniment, tmp_path):
    """Each is done within `--page-time` and 15 s, and a crawl of all of them goes on to its end."""
    out = tmp_path / "out"
    answers = {f"/{name}": plain(body.encode(), "text/html") for name, body in CRUEL.items()}
    with LoggingSite(answers) as site:
        urls = [site.url(f"/{name}") for name in CRUEL]
        done = muniment(
            "crawl",
            *urls,
            "-o",
            out,
            *QUICK,
            "--behaviors",
            "none",
            "--page-time",
            "4",
            "--tabs",
            "2",
            "--workers",
            "1",
        )
    assert "pages" in done.stderr
    took = {}
    for row in exchanges(out):
        if row["page_id"] and row["url"] in urls:
            took[row["url"]] = row
    assert set(took) == set(urls)
    assert muniment("check", out).code == 0


def test_a_long_page_is_cut_and_its_colours_are_right(muniment, tmp_path):
    out, saved = tmp_path / "out", tmp_path / "saved"
    body = (
        b"<body style='margin:0'><div style='height:16000px;background:rgb(10,200,30)'></div>"
        b"<div style='height:34000px;background:rgb(200,10,90)'></div>"
    )
    with LoggingSite({"/page": plain(body, "text/html")}) as site:
        done = muniment(
            "crawl",
            site.url("/page"),
            "-o",
            out,
            *OPTIONS,
            "--level",
            "0",
            "--viewport",
            "320x240",
            "--behaviors",
            "none",
        )
        assert done.code == 0, done.stderr
        assert muniment("results", site.url("/page"), "-o", out, "--save", saved).code == 0
    assert (saved / "thumbnail.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    assert pixels((saved / "view.png").read_bytes()).shape == (240, 320, 3)
    full = pixels((saved / "fullPage.png").read_bytes())
    assert full.shape == (16384, 320, 3)
    assert (full[:16000] == (10, 200, 30)).all() and (full[16000:] == (200, 10, 90)).all()
