"""A web page with ReplayWeb.page and an archive, served with ranges from this machine alone; others read it so."""

from __future__ import annotations

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.support.chromium import BrowserPage

__all__ = ["ARCHIVED", "PlayerSite"]

_ASSETS = Path(__file__).resolve().parents[2] / ".replayweb"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PAGE = """<!doctype html><script src="/replay/ui.js"></script><body style="margin: 0; height: 100vh">
<replay-web-page source="/{name}" url="{url}" replayBase="/replay/" embed="default"></replay-web-page>"""
ARCHIVED = """
function archived() {
  const all = [];
  const walk = (root) => {
    for (const one of root.querySelectorAll("*")) {
      if (one.shadowRoot) walk(one.shadowRoot);
      if (one.tagName === "IFRAME" && one.contentDocument) { all.push(one); walk(one.contentDocument); }
    }
  };
  walk(document);
  return all.find((one) => one.src.includes("mp_/"));
}
function shown() { return archived()?.contentDocument; }
"""
"""The frame of the archived page, below several shadow roots and frames, and its document."""
_KEPT = """(async () => {
  const frame = archived();
  const answer = await frame.ownerDocument.defaultView.fetch(frame.src.replace(/[0-9]*mp_[/].*/, %s));
  const bytes = new Uint8Array(await answer.arrayBuffer());
  return [answer.status, btoa(bytes.reduce((text, one) => text + String.fromCharCode(one), ""))];
})()"""


class PlayerSite:
    """Shows one URL of one WACZ or WARC file."""

    def __init__(self, archive: Path, shown: str) -> None:
        assert (_ASSETS / "sw.js").exists(), "ReplayWeb.page is missing; scripts/test installs it"
        files = {
            "/": ("text/html", _PAGE.format(name=archive.name, url=shown).encode()),
            f"/{archive.name}": ("application/octet-stream", archive.read_bytes()),
            **{f"/replay/{name}": ("text/javascript", (_ASSETS / name).read_bytes()) for name in ("ui.js", "sw.js")},
        }
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def open(self, page: BrowserPage) -> None:
        """Show it and wait until the archived page is there."""
        page.goto(self.url)
        page.wait(ARCHIVED + "shown()?.readyState === 'complete' && shown().location.href !== 'about:blank'")

    @staticmethod
    def kept(page: BrowserPage, at: str, url: str) -> tuple[int, bytes]:
        """Status and body that the player has for a URL at a time, not rewritten; the page must show the archive."""
        status, text = page.run(ARCHIVED + _KEPT % json.dumps(f"{at}id_/{url}"))
        return status, base64.b64decode(text)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(files: dict[str, tuple[str, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            kind, data = files.get(self.path.partition("?")[0], ("", b""))
            part = _RANGE.fullmatch(self.headers.get("Range", ""))
            first, last = _span(part, len(data)) if part and kind else (0, len(data) - 1)
            self.send_response(404 if not kind else 206 if part else 200)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Accept-Ranges", "bytes")
            if part:
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.send_header("Content-Length", str(last - first + 1))
            self.end_headers()
            if with_body:
                self.wfile.write(data[first : last + 1])

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _span(part: re.Match[str], length: int) -> tuple[int, int]:
    if not part[1]:
        return max(0, length - int(part[2])), length - 1
    return int(part[1]), min(int(part[2] or length), length - 1)
