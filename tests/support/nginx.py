"""A real nginx on free loopback ports, for tests and benchmarks that need a site with a server's own habits."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["LoggedRequest", "Nginx", "NginxError", "closed_port", "free_port"]

_START_TRIES = 5
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0

_CONFIG = """\
daemon off;
worker_processes {workers};
{user}
pid {home}/nginx.pid;
error_log {home}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    types {{
        text/html html htm; text/css css; text/plain txt; text/xml xml; text/javascript js; application/json json;
        image/png png; image/jpeg jpg jpeg; image/gif gif; image/svg+xml svg; image/x-icon ico; font/woff2 woff2;
        application/pdf pdf; application/gzip gz; application/warc warc;
    }}
    default_type application/octet-stream;
    log_format request "$msec\t$connection\t$request_method\t$host\t$request_uri\t"
                       "$status\t$body_bytes_sent\t$http_user_agent";
    access_log {access_log};
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000000;
    keepalive_timeout 75s;
    {http}
    server {{
        {listen}
        {tls}
        root "{root}";
        charset off;
        {server}
    }}
}}
"""


class NginxError(Exception):
    """nginx is missing, or would not start with the configuration it was given."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One line of the access log, written when nginx had sent the whole response."""

    ended_at: float
    """Unix seconds, with milliseconds."""
    connection: int
    """nginx's serial number of the connection."""
    method: str
    host: str
    uri: str
    """Path and query as requested."""
    status: int
    body_bytes: int
    """Bytes of the body that were sent, with its transfer coding."""
    user_agent: str


def free_port(address: str = "127.0.0.1") -> int:
    """A port of the loopback address that nothing listened on a moment ago.

    It is none of those that the system gives to connections by itself: tests beside this one make many.
    """
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return port


_PORTS = range(20_000, 32_000)


def closed_port(address: str = "127.0.0.1") -> int:
    """A port of the loopback address that refuses connections and is given to nobody while this process lives."""
    holder = socket.socket()
    holder.bind((address, 0))
    port: int = holder.getsockname()[1]
    # Bound and never closed: the kernel refuses for it, as long as it does not listen.
    holder.detach()
    return port


class Nginx:
    """Serves a directory while its `with` block lasts; needs no rights, and works as root too.

    Each of `addresses` listens on each of the ports (`ports`, or as many free ones as `port_count` says). `server` and
    `http` are lines put into those blocks of the configuration, `server` with locations of its own for example.
    """

    def __init__(
        self,
        root: Path,
        *,
        addresses: Sequence[str] = ("127.0.0.1",),
        port_count: int = 1,
        ports: Sequence[int] = (),
        tls: bool = False,
        server: str = "",
        http: str = "",
        workers: int = 1,
        access_log: bool = True,
    ) -> None:
        self.root = root
        self.addresses = tuple(addresses)
        self.ports = tuple(ports)
        self.tls = tls
        self._port_count = port_count
        self._server, self._http = server, http
        self._workers, self._access_log = workers, access_log
        self._stack = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._home = Path()
        self._read: list[LoggedRequest] = []
        self._read_bytes = 0

    @property
    def url(self) -> str:
        """The first address and port, as a base URL that ends in a slash."""
        return self.urls[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs of all ports of the first address, then of the next address."""
        scheme = "https" if self.tls else "http"
        return tuple(f"{scheme}://{address}:{port}/" for address in self.addresses for port in self.ports)

    @property
    def certificate(self) -> Path:
        """The self-made certificate, in PEM, that clients may trust; with `tls` only."""
        return self._home / "certificate.pem"

    @property
    def pid(self) -> int:
        """The process id of nginx's master process."""
        if self._process is None:
            raise NginxError("nginx is not running")
        return self._process.pid

    def __enter__(self) -> Self:
        """Start nginx and wait until it answers on every port."""
        binary = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")
        if binary is None:
            raise NginxError("nginx is missing; install it with: apt-get install nginx")
        with self._stack as stack:
            self._home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nginx-")))
            if self.tls:
                _make_certificate(self._home, self.addresses)
            self._start(binary)
            stack.callback(self.stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop nginx and remove its files."""
        self._stack.close()

    def stop(self) -> None:
        """Stop nginx now, as a server that goes away would; its log can still be read inside the `with` block."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def requests(self) -> list[LoggedRequest]:
        """Every request answered so far, in the order in which responses ended."""
        path = self._home / "access.log"
        if path.exists():
            with path.open("rb") as log:
                log.seek(self._read_bytes)
                lines, newline, _ = log.read().rpartition(b"\n")
            if newline:
                self._read_bytes += len(lines) + 1
                self._read.extend(map(_parse_line, lines.decode("utf-8", "surrogateescape").split("\n")))
        return list(self._read)

    def wait_requests(self, count: int, seconds: float = 5.0) -> list[LoggedRequest]:
        """The log once it holds `count` requests, or as it is when the time is over: nginx logs after it has sent."""
        end = time.monotonic() + seconds
        while len(found := self.requests()) < count and time.monotonic() < end:
            time.sleep(0.01)
        return found

    def _start(self, binary: str) -> None:
        wanted = self.ports
        for _ in range(_START_TRIES):
            self.ports = wanted or tuple(free_port(self.addresses[0]) for _ in range(self._port_count))
            (self._home / "nginx.conf").write_text(self._config(), encoding="utf-8")
            error_log = self._home / "error.log"
            error_log.write_bytes(b"")
            command = [binary, "-p", str(self._home), "-c", str(self._home / "nginx.conf"), "-e", str(error_log)]
            self._process = subprocess.Popen(
                [*_dies_with_parent(), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if self._answers():
                return
            self.stop()
            report = error_log.read_text(encoding="utf-8", errors="replace")
            # Somebody may have taken a free port since it was found.
            if wanted or "Address already in use" not in report:
                break
        raise NginxError(f"nginx did not start: {report.strip() or 'it said nothing'}")

    def _answers(self) -> bool:
        """Whether nginx has begun before the time is over: every port takes connections, and its pid file is there.

        It listens before it writes that file. Without it, another program may hold the port that nginx tries to bind,
        and nginx ends soon.
        """
        end = time.monotonic() + _START_SECONDS
        waiting = [(address, port) for address in self.addresses for port in self.ports]
        pid_file = self._home / "nginx.pid"
        while self._process is not None and self._process.poll() is None and time.monotonic() < end:
            waiting = [place for place in waiting if not _takes_connections(place)]
            if not waiting and pid_file.exists():
                return True
            time.sleep(0.01)
        return False

    def _config(self) -> str:
        tls = f"ssl_certificate {self.certificate}; ssl_certificate_key {self._home}/key.pem;" if self.tls else ""
        return _CONFIG.format(
            workers=self._workers,
            user=_user_line(),
            home=self._home,
            access_log=f"{self._home}/access.log request" if self._access_log else "off",
            http=self._http,
            listen="\n        ".join(
                f"listen {address}:{port} backlog=4096{' ssl' if self.tls else ''};"
                for address in self.addresses
                for port in self.ports
            ),
            tls=tls,
            root=self.root,
            server=self._server,
        )


def _takes_connections(place: tuple[str, int]) -> bool:
    try:
        socket.create_connection(place, 1.0).close()
    except OSError:
        return False
    return True


def _user_line() -> str:
    """As root, nginx's workers would run as nobody and could not read the directories that root's tests make."""
    if os.geteuid() != 0:
        return ""
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(0).gr_name};"


def _dies_with_parent() -> list[str]:
    """What to put before a command so that the kernel ends it when the program that started it is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def _make_certificate(home: Path, addresses: Sequence[str]) -> None:
    names = ",".join(["DNS:localhost", *(f"IP:{address}" for address in addresses)])
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", f"subjectAltName={names}"]
    command += ["-keyout", str(home / "key.pem"), "-out", str(home / "certificate.pem")]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise NginxError("openssl is missing; install it with: apt-get install openssl") from None
    except subprocess.CalledProcessError as error:
        raise NginxError(f"openssl made no certificate: {error.stderr}") from error


def _parse_line(line: str) -> LoggedRequest:
    ended_at, connection, method, host, uri, status, body_bytes, agent = line.split("\t")
    return LoggedRequest(float(ended_at), int(connection), method, host, uri, int(status), int(body_bytes), agent)
