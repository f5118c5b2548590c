"""The servers and readers that other tests rely on do what those tests assume."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
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
