"""Answers that take their time, clients that hang up, and what is no request at all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.support.logging_site import LoggingSite, plain
from tests.support.proxied_runs import assert_equal, crawl_command, ended, environment, recorded, table, visit
from tests.support.raw_server import make_certificate

from muniment.control.check import check_directory

PAGE = plain(b"<p>hello", "text/html")
LARGE = 100 << 20


def slowly(sock: socket.socket, _request: bytes) -> bytes:
    """An answer whose first half comes at once, and the second when somebody has waited for it."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nfirst")
    time.sleep(2)
    return b"-last"


def for_ever(sock: socket.socket, _request: bytes) -> bytes:
    """Events without end."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for number in range(1000):
        sock.sendall(f"data: {number}\n\n".encode())
        time.sleep(0.05)
    return b""


def large(sock: socket.socket, _request: bytes) -> bytes:
    """200 MB."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: %d\r\n\r\n" % LARGE)
    piece = os.urandom(1 << 20)
    for _ in range(LARGE >> 20):
        sock.sendall(piece)
    return b""


def echo(sock: socket.socket, request: bytes) -> bytes:
    """A websocket, as far as its bytes go."""
    sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    while data := sock.recv(4096):
        sock.sendall(b"<" + data + b">")
    return b""


def test_an_answer_is_passed_on_while_it_comes(tmp_path: Path) -> None:
    with LoggingSite({"/page": PAGE, "/slow": slowly}, make_certificate(tmp_path, "site")) as site:
        program = """
sock = client.connect(BASE)
sock.sendall(b"GET /slow HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
held = b""
while not held.endswith(b"first"):
    held += sock.recv(4096)
at = time.monotonic()
while not held.endswith(b"-last"):
    held += sock.recv(4096)
print("waited", time.monotonic() - at > 1)
""".replace("BASE", repr(site.url("/slow")))
        out = visit(tmp_path, site.url("/page"), program)
        assert out.with_suffix(".output").read_text() == "waited True\n"
        assert_equal(out, site.url("/slow"), site.asked("/slow")[0])


def test_a_client_that_hangs_up_ends_nothing(tmp_path: Path) -> None:
    with LoggingSite({"/page": PAGE, "/slow": slowly}) as site:
        program = """
sock = client.connect(BASE)
sock.sendall(f"GET {BASE} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
sock.recv(20)
sock.close()
time.sleep(3)
""".replace("BASE", repr(site.url("/slow")))
        out = visit(tmp_path, site.url("/page"), program)
        assert_equal(out, site.url("/slow"), site.asked("/slow")[0])
    assert ended(out)["/slow"]["error"] == ""


def test_what_never_ends_is_cut_when_its_page_does(tmp_path: Path) -> None:
    with LoggingSite({"/page": PAGE, "/events": for_ever}) as site:
        program = """
sock = client.connect(BASE)
sock.sendall(f"GET {BASE} HTTP/1.1\\r\\nHost: x\\r\\nAccept: text/event-stream\\r\\n\\r\\n".encode())
held = b""
while b"data: 5" not in held:
    held += sock.recv(4096)
""".replace("BASE", repr(site.url("/events")))
        out = visit(tmp_path, site.url("/page"), program)
    [(block, fields)] = [
        (block, fields) for kind, url, block, fields in recorded(out) if kind == "response" and url.endswith("/events")
    ]
    assert fields["warc-truncated"] == "time"
    assert b"data: 5\n\n" in block
    assert ended(out)["/events"]["error"].startswith("limit: cut because its page has ended")
    [row] = [row for row in table(out) if row["url"].endswith("/events")]
    assert (row["status"], row["truncated"]) == (200, "time")
    assert check_directory(out).faults == ()


def test_a_large_file_and_a_slow_client_take_little_memory(tmp_path: Path) -> None:
    with LoggingSite({"/page": PAGE, "/large": large}) as site:
        program = """
from pathlib import Path
worker = Path(f"/proc/{__import__('os').getppid()}/status")
def memory():
    return int(next(line for line in worker.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
sock = client.connect(BASE)
before = memory()
sock.sendall(f"GET {BASE} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
time.sleep(3)
size = 0
while size < SIZE:
    data = sock.recv(1 << 20)
    assert data
    size += len(data)
print(memory() - before)
""".replace("BASE", repr(site.url("/large"))).replace("SIZE", str(LARGE))
        out = visit(tmp_path, site.url("/page"), program)
    assert int(out.with_suffix(".output").read_text()) < 60 << 10
    [row] = [row for row in table(out) if row["url"].endswith("/large")]
    assert (row["body_length"], row["error"]) == (LARGE, "")


def test_a_websocket_passes_and_is_not_recorded(tmp_path: Path) -> None:
    answers = {"/page": PAGE, "/socket": echo}
    with LoggingSite(answers) as site, LoggingSite(answers, make_certificate(tmp_path, "site")) as secure:
        program = """
for base in BASES:
    sock = client.connect(base, tunnel=True)
    sock.sendall(b"GET /socket HTTP/1.1\\r\\nConnection: keep-alive, Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
    held = b""
    while b"\\r\\n\\r\\n" not in held:
        held += sock.recv(4096)
    sock.sendall(b"ping")
    held = held.partition(b"\\r\\n\\r\\n")[2]
    while not held.endswith(b">"):
        held += sock.recv(4096)
    print(held.decode())
    sock.close()
sock = client.connect("http://10.0.0.1/socket", tunnel=True)
sock.sendall(b"GET /socket HTTP/1.1\\r\\nHost: x\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
print(sock.recv(12).decode())
""".replace("BASES", repr([site.url("/socket"), secure.url("/socket")]))
        out = visit(tmp_path, site.url("/page"), program)
        assert out.with_suffix(".output").read_text().split() == ["<ping>", "<ping>", "HTTP/1.1", "403"]
        assert len(site.asked("/socket")) == len(secure.asked("/socket")) == 1
    assert not [row for row in table(out) if row["url"].endswith("/socket")]


def test_what_is_no_request_is_refused_and_others_go_on(tmp_path: Path) -> None:
    with LoggingSite({"/page": PAGE, "/good": plain(b"good")}) as site:
        program = """
import os
for garbage in [
    b"\\x16\\x03\\x01\\x02", b"GET /\\r\\n\\r\\n", b"GET / HTTP/1.1\\r\\n\\r\\n", b"CONNECT x HTTP/1.1\\r\\n\\r\\n",
    b"GET ftp://a.example/ HTTP/1.1\\r\\n\\r\\n", b"GET http://a.example/ HTTP/1.1\\r\\nno colon\\r\\n\\r\\n",
    b"POST http://a.example/ HTTP/1.1\\r\\nContent-Length: 1\\r\\nContent-Length: 2\\r\\n\\r\\n",
    b"POST http://a.example/ HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n",
    b"GET http://a.example/ HTTP/1.1\\r\\nX: " + b"x" * 300000, os.urandom(5000) + b"\\r\\n\\r\\n", b"GET http://a.exa",
]:
    sock = socket.create_connection(client._at, timeout=10)
    sock.sendall(garbage)
    sock.shutdown(socket.SHUT_WR)
    try:
        print(sock.recv(12).decode(), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)
    sock.close()
tunnel = socket.create_connection(client._at, timeout=10)
tunnel.sendall(b"CONNECT 127.0.0.1:443 HTTP/1.1\\r\\n\\r\\n\\x16garbage that is not TLS at all, whatever it says")
while tunnel.recv(4096):
    pass
sock = client.connect(BASE)
both = f"GET {BASE} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode() * 2
for at in range(len(both)):
    sock.sendall(both[at:at + 1])
print(read_answer(sock)[-4:].decode(), read_answer(sock)[-4:].decode())
""".replace("BASE", repr(site.url("/good")))
        out = visit(tmp_path, site.url("/page"), program)
        said = out.with_suffix(".output").read_text()
        assert "Traceback" not in said, said
        assert said.endswith("good good\n")
        assert len(site.asked("/good")) == 2
    assert [row["url"] for row in table(out) if row["page_id"]] == [site.url("/good")] * 2


def test_killed_in_the_middle_the_page_is_asked_for_again(tmp_path: Path) -> None:
    """What was recorded stands; nothing else is lost, and nothing stays behind."""
    with LoggingSite({"/page": PAGE, "/one": plain(b"one"), "/slow": slowly}) as site:
        program = """
print(client.ask(ONE, f"GET @ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())[-3:].decode(), flush=True)
client.ask(SLOW, b"GET @ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
""".replace("ONE", repr(site.url("/one"))).replace("SLOW", repr(site.url("/slow")))
        out = tmp_path / "out"
        command = crawl_command(out, site.url("/page"), program)
        with subprocess.Popen(command, cwd=tmp_path, env=environment()) as crawl:
            deadline = time.monotonic() + 60
            while not site.asked("/slow"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            crawl.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 30
        while subprocess.run(command, cwd=tmp_path, env=environment(), check=False).returncode:
            assert time.monotonic() < deadline
    rows = [row["url"].rpartition("/")[2] for row in table(out) if row["status"] == 200]
    assert {"page", "one", "slow"} <= set(rows)
    assert check_directory(out).faults == ()
