"""A web page with ReplayWeb.page and a WACZ, served with ranges from this machine alone."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

__all__ = ["PlayerSite"]

_ASSETS = Path(__file__).resolve().parents[2] / ".replayweb"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PAGE = """<!doctype html><script src="/replay/ui.js"></script><body style="margin: 0; height: 100vh">
<replay-web-page source="/a.wacz" url="{url}" replayBase="/replay/" embed="default"></replay-web-page>"""


class PlayerSite:
    """Shows one URL of one WACZ."""

    def __init__(self, wacz: Path, shown: str) -> None:
        assert (_ASSETS / "sw.js").exists(), "ReplayWeb.page is missing; scripts/test installs it"
        files = {
            "/": ("text/html", _PAGE.format(url=shown).encode()),
            "/a.wacz": ("application/octet-stream", wacz.read_bytes()),
            **{f"/replay/{name}": ("text/javascript", (_ASSETS / name).read_bytes()) for name in ("ui.js", "sw.js")},
        }
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

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
