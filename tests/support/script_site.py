"""A site whose pages are built by scripts, on a port of the loopback; it remembers what it was asked for."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["ScriptSite", "script_site"]

_HOME = b"""<!doctype html><html><head><title>before</title><script src=/app.js></script></head>
<body><div id=root></div></body></html>"""
_APP = b"""
document.addEventListener('DOMContentLoaded', async () => {
  document.title = 'Built';
  const root = document.getElementById('root');
  root.innerHTML = '<h1>Hello from scripts</h1><a href="/two.html">two</a><img src="/red.svg"><div id=host></div>';
  document.getElementById('host').attachShadow({mode: 'open'}).innerHTML = '<a href="/shadow.html">shadow</a>';
  const data = await (await fetch('/data.json')).json();
  root.querySelector('h1').textContent += ' ' + data.word;
  await fetch('/echo', {method: 'POST', body: 'a=1'});
  window.open('/window.html');
  history.pushState({}, '', '/route');
  console.error('it went wrong');
});
"""
_STATIC = b"<!doctype html><title>static</title><p>A page that needs no scripts at all. <a href=/>home</a></p>"
_SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9" fill="red"/></svg>'


class ScriptSite:
    """The site; further pages can be put into `files`."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """How often each request came, as `METHOD path`."""
        self.agents: dict[str, str] = {}
        """The last User-Agent by path."""
        self.cookies: dict[str, set[str]] = {}
        """Those of the last request by path."""
        self.files: dict[str, tuple[str, bytes]] = {
            "/": ("text/html", _HOME),
            "/app.js": ("text/javascript", _APP),
            "/data.json": ("application/json", b'{"word": "and data"}'),
            "/echo": ("text/plain", b"thanks"),
            "/red.svg": ("image/svg+xml", _SVG),
            "/two.html": ("text/html", _STATIC),
            "/shadow.html": ("text/html", _STATIC),
            "/window.html": ("text/html", _STATIC),
            "/route": ("text/html", _STATIC),
        }
        self.statuses: dict[str, int] = {}
        """Other statuses than 200 for those that are there, and 404 for the others, by path."""
        self.headers: dict[str, dict[str, str]] = {}
        """Further headers of answers, by path."""
        self.accounts: dict[str, str] = {}
        """The Authorization field that a path asks for."""
        self.base = ""


@contextmanager
def script_site() -> Iterator[ScriptSite]:
    """Serve the site until the end of the block."""
    site = ScriptSite()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(site: ScriptSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            site.asked[f"{self.command} {self.path}"] += 1
            site.agents[path] = self.headers.get("User-Agent") or ""
            site.cookies[path] = {one for one in (self.headers.get("Cookie") or "").split("; ") if one}
            kind, body = site.files.get(path, ("text/plain", b"not here"))
            asks = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
            if path in site.accounts and self.headers.get("Authorization") != site.accounts[path]:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="site"')
                body = b"who are you?"
            elif path in site.files and asks[1]:
                first, last = int(asks[0]), min(int(asks[2] or len(body)), len(body) - 1)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
                body = body[first : last + 1]
                site.asked[f"{self.command} {self.path} in part"] += 1
            else:
                self.send_response(site.statuses.get(path, 200 if path in site.files else 404))
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in site.headers.get(path, {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815  (as http.server names them)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    return Handler
