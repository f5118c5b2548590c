"""A repository that is served over smart HTTP, by git's own program, as answers of a site."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.support.logging_site import Answer

__all__ = ["GitAnswers", "make_repository"]

_AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.com")


def make_repository(root: Path, name: str) -> None:
    """Make `root/name`, with one commit of one file."""
    work = root / f"{name}.work"
    work.mkdir(parents=True)
    (work / "file.txt").write_text("held by git\n" * 100)
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*_AUTHOR, "commit", "-q", "-m", "First"]):
        subprocess.run(["git", *command], cwd=work, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(root / name)], check=True)


class GitAnswers(Mapping[str, Answer]):
    """The answers of `pages`, and of the repositories below a folder."""

    def __init__(self, root: Path, pages: Mapping[str, Answer]) -> None:
        self._root, self._pages = root, pages

    def get(self, path: str, default: Answer = b"") -> Answer:  # type: ignore[override]
        """The answer of a path."""
        return self._pages.get(path, default) if ".git/" not in path else self._ask(path)

    def __getitem__(self, path: str) -> Answer:
        return self._pages[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pages)

    def __len__(self) -> int:
        return len(self._pages)

    def _ask(self, path: str) -> Callable[[object, bytes], bytes]:
        def answer(_sock: object, request: bytes) -> bytes:
            return _by_git(self._root, path, request)

        return answer


def _by_git(root: Path, target: str, request: bytes) -> bytes:
    head, _, body = request.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
    given = {name.lower(): value for name, value in fields.items()}
    path, _, query = target.partition("?")
    variables = {
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": head.split(b" ", 1)[0].decode(),
        "CONTENT_TYPE": given.get("content-type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": given.get("content-encoding", ""),
        "GIT_PROTOCOL": given.get("git-protocol", ""),
        "REMOTE_ADDR": "127.0.0.1",
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(["git", "http-backend"], env=variables, input=body, capture_output=True, check=True)
    headers, _, payload = done.stdout.partition(b"\r\n\r\n")
    lines = headers.split(b"\r\n")
    status = next((line.partition(b": ")[2] for line in lines if line.startswith(b"Status:")), b"200 OK")
    kept = [line for line in lines if not line.startswith(b"Status:")]
    return b"\r\n".join([b"HTTP/1.1 " + status, *kept, b"Content-Length: %d" % len(payload), b"", payload])
