"""The servers and readers that other tests rely on do what those tests assume."""

from __future__ import annotations

import gzip
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.support.nginx import Nginx, NginxError


def test_nginx_logs_each_request_with_its_connection(tmp_path: Path, nginx: Callable[..., Nginx]) -> None:
    (tmp_path / "a.html").write_text("hello")
    server = nginx(tmp_path, port_count=2, addresses=("127.0.0.1", "127.0.0.2"))
    assert len(server.urls) == 4
    for base in server.urls:
        assert urllib.request.urlopen(f"{base}a.html?x=1").read() == b"hello"
    logged = server.wait_requests(4)
    assert [(r.method, r.uri, r.status, r.body_bytes) for r in logged] == [("GET", "/a.html?x=1", 200, 5)] * 4
    assert len({r.connection for r in logged}) == 4


def test_nginx_speaks_tls_with_a_certificate_of_its_own(tmp_path: Path, nginx: Callable[..., Nginx]) -> None:
    (tmp_path / "index.html").write_text("hello")
    server = nginx(tmp_path, tls=True)
    trust = ssl.create_default_context(cafile=str(server.certificate))
    assert urllib.request.urlopen(server.url, context=trust).read() == b"hello"


def test_nginx_takes_extra_lines_and_reports_wrong_ones(tmp_path: Path, nginx: Callable[..., Nginx]) -> None:
    server = nginx(tmp_path, server="location /gone { return 410; }")
    with pytest.raises(urllib.error.HTTPError, match="410") as caught:
        urllib.request.urlopen(f"{server.url}gone")
    caught.value.close()
    with pytest.raises(NginxError, match="unknown directive"):
        nginx(tmp_path, server="nonsense;")


def test_nginx_that_is_missing_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.nginx.shutil.which", lambda *_, **__: None)
    with pytest.raises(NginxError, match="apt-get install nginx"), Nginx(tmp_path):
        pass


def test_python_documentation_is_served_with_its_links_followed(python_doc_site: Nginx) -> None:
    for path in ("", "library/os.html", "_static/jquery.js", "_static/pydoctheme.css"):
        assert urllib.request.urlopen(python_doc_site.url + path).status == 200


def test_pywb_replays_the_raw_body(tmp_path: Path, pywb: Callable[[Sequence[Path]], str]) -> None:
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 11\r\n\r\n<p>kept</p>"
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        "WARC-Date: 2026-11-20T10:00:00Z\r\nWARC-Target-URI: http://example.com/\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
    )
    path = tmp_path / "one.warc.gz"
    path.write_bytes(gzip.compress(head.encode() + http + b"\r\n\r\n"))
    base = pywb([path])
    assert urllib.request.urlopen(f"{base}/c/20261120100000id_/http://example.com/").read() == b"<p>kept</p>"
