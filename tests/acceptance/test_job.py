"""`muniment job`, `pipelines` and `tokens` as operators give them: by a server, by a tracker, in a directory."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from crawled import wait_until
from tests.support.gated_site import GatedSite
from tests.support.postgres import Postgres

SITE = "https://example.com/"
RULES = f'[{{"prefix":"{SITE}","skip":true}}]'
Ask = Callable[..., Any]


@pytest.fixture
def serve(muniment: Any) -> Callable[..., tuple[subprocess.Popen[str], str]]:
    """Begins a server of a tracker; its process and its URL."""

    def begin(*where: object) -> tuple[subprocess.Popen[str], str]:
        process = muniment.start("serve", "--listen", "127.0.0.1:0", *where)
        assert process.stdout is not None
        return process, process.stdout.readline().split()[1]

    return begin


@pytest.fixture(params=["server", "database"])
def ask(request: pytest.FixtureRequest, muniment: Any, tmp_path: Path, serve: Any) -> Iterator[Ask]:
    """`ask("job", "list")` → what it printed as JSON, by one of the doors; `code` is the expected exit code."""
    kept = tmp_path / "tracker"
    where: tuple[object, ...] = ("--state", kept)
    environ = {}
    if request.param == "database":
        postgres: Postgres = request.getfixturevalue("postgres")
        where = ("--database", postgres.create(request.function.__name__))
    elif request.param == "server":
        token = muniment("tokens", "add", "boss", "--scope", "admin", *where)
        assert token.code == 0, token.stderr
        _, url = serve("--state", kept)
        (tmp_path / "token").write_text(token.stdout)
        where = ("--server", url, "--token-file", tmp_path / "token")
        environ = {"http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}

    def ask(*words: object, code: int = 0, as_json: bool = True) -> Any:
        done = muniment(*words, *where, *(("--json",) if as_json else ()), **environ)
        assert done.code == code, f"{words}\n{done.stdout}{done.stderr}"
        if code == 2:
            return json.loads(done.stderr)["error"] if as_json else done.stderr
        return json.loads(done.stdout) if as_json else done.stdout

    yield ask


def test_every_verb_by_every_door(ask: Ask, tmp_path: Path) -> None:
    made = ask(
        "job", "add", SITE, "--per-host", 2, "--no-robots", "--nice", -1, "--tags", "a,b", "--max-slots", 3,
        "--name", "n", "--explanation", "why not", "--ignore", "/x", "--paused", "--header", "Accept-Language: de",
    )  # fmt: skip
    job = made["id"]
    assert made["settings"] == {"ignore": ["/x"], "per-host": 2, "robots": False, "header": ["Accept-Language: de"]}
    terms = [made[name] for name in ("nice", "tags", "max_slots", "name", "explanation", "paused")]
    assert terms == [-1, ["a", "b"], 3, "n", "why not", True]
    assert ask("job", "add", SITE, as_json=False) == f"{job + 1}\n"
    assert [one["id"] for one in ask("job", "list")] == [job, job + 1]
    assert ask("job", "list", "--state", "FINISHED") == []
    shown = ask("job", "show", job)
    assert shown["counts"]["site"]["pages"]["queued"] == 1
    assert {**shown, "counts": None} == made

    assert not ask("job", "resume", job)["paused"]
    assert ask("job", "pause", job)["paused"]
    changed = ask(
        "job", "set", job, "delay=250-300", "max-pages=5", "nice=2", "max_slots=none", "tags=none", "explanation=so"
    )
    assert [one["what"] for one in changed] == ["delay", "max-pages", "nice", "max_slots", "tags", "explanation"]
    assert [one["after"] for one in ask("job", "ignore", job, "/y", "--set", "phpbb")] == ["/y", "set phpbb"]
    assert [one["before"] for one in ask("job", "unignore", job, "/y")] == ["/y"]
    assert "in force" in ask("job", "unignore", job, "/y", code=2)
    rules = tmp_path / "rules.json"
    rules.write_text('[{"prefix": "https://example.com/", "skip": true}]')
    assert ask("job", "rules", job, rules, "--dry-run")["skipped"] == 1
    assert [one["what"] for one in ask("job", "rules", job, rules)] == ["rules"]
    assert ask("job", "rules", job) == [{"prefix": SITE, "skip": True}]
    assert ask("job", "rules", job, "--version", 1) == []
    before = tmp_path / "before.json"
    before.write_text(ask("job", "rules", job, as_json=False))
    rules.write_text("[]")
    assert [ask("job", "rules", job, file)[0]["after"] for file in (rules, before)] == ["", RULES]
    assert [ask(*words)["pages"] for words in (
        ("job", "stash", job + 1), ("job", "unstash", job + 1, 1), ("job", "nice", job + 1, 4, "--host", "example.com")
    )] == [1, 1, 1]  # fmt: skip
    assert ask("job", "why", job + 1, SITE)["state"] == "READY"
    told = ask("job", "changes", job)
    assert [one["what"] for one in told[:4]] == ["paused", "paused", "delay", "max-pages"]
    assert {one["who"] for one in told} == {told[0]["who"]}

    assert ask("job", "wait", job + 1, "--timeout", 0, code=3)["state"] == "ACTIVE"
    assert ask("job", "abort", job + 1)["outcome"] == "aborted"
    ask("job", "wait", job + 1, code=3)
    failed = ask("job", "fail", job + 1, "no", "room")
    assert (failed["outcome"], failed["reason"]) == ("failed", "no room")
    ask("job", "wait", job + 1, code=4)
    assert ask("job", "resume", job + 1)["outcome"] == ""
    assert "there is no job 77" in ask("job", "show", 77, code=2)
    assert "there is no job 77; `muniment job list` shows them" in ask("job", "pause", 77, code=2)
    assert "no JOB given" in ask("job", "show", code=2)


def test_lists_pipelines_and_tokens_by_every_door(ask: Ask, tmp_path: Path) -> None:
    listed = tmp_path / "list.jsonl"
    listed.write_text("".join(f'{{"url": "{SITE}{number}", "n": {number}}}\n' for number in range(2_500)))
    job = int(ask("job", "add", "--fetch", listed, "--tries", 2, as_json=False))
    assert ask("job", "show", job)["pages"]["pending"] == 2_500
    assert ask("job", "feed", job, listed) == {"at": 2_500}
    shorter = tmp_path / "shorter.jsonl"
    shorter.write_text(listed.read_text()[:200_0])
    assert "another list" in ask("job", "feed", job, shorter, code=2)
    assert "has no list: only a job of `job add --fetch`" in ask(
        "job", "feed", ask("job", "add", SITE)["id"], listed, code=2
    )

    token = ask("pipelines", "add", "berlin-2", "--tags", "a", as_json=False).strip()
    assert token != ask("pipelines", "token", "berlin-2", as_json=False).strip()
    assert ask("pipelines", "set", "berlin-2", "--tags", "b", "--matchonly")["tags"] == ["b"]
    assert [one["name"] for one in ask("pipelines", "list")] == ["berlin-2"]
    ask("pipelines", "lock", "berlin-2", "--job", job)
    ask("pipelines", "unlock", "berlin-2")
    assert "is away" in ask("pipelines", "stop", "berlin-2", code=2)
    assert ask("pipelines", "lost", "berlin-2") == {"pending": 0}
    ask("pipelines", "remove", "berlin-2")
    assert "there is no pipeline" in ask("pipelines", "set", "berlin-2", "--matchonly", code=2)

    made = ask("tokens", "add", "ann", "--scope", "read,submit", "--expires", "30d")
    mine = next(one for one in ask("tokens", "list") if one["name"] == "ann")
    assert mine["scopes"] == ["read", "submit"]
    assert made["token"] not in json.dumps(mine)
    ask("tokens", "revoke", "ann")
    assert "there is no token" in ask("tokens", "revoke", "ann", code=2)
    assert "there is no scope" in ask("tokens", "add", "x", "--scope", "root", code=2)


MACHINE = (
    ("--out", "x"), ("--run-id", "x"), ("--prefix", "x"), ("--warc-size", "9"), ("--min-free", "9"), ("--workers", "2"),
    ("--inflight", "9"), ("--proxy", "http://p:1"), ("--auth-file", "x"), ("--insecure",), ("--allow-private",),
)  # fmt: skip


def test_what_a_job_cannot_be_given(muniment: Any, tmp_path: Path) -> None:
    refused = [(option, "muniment pipeline") for option in MACHINE]
    refused += [
        (("--max-time", "9"), "max-pages"),
        (("--header", "Authorization: secret"), "muniment pipeline --header"),
        (("--from", "lines"), "list"),
        (("--shard", "1"), "list"),
        (("--tags", "A b"), "cannot be a tag"),
        (("--max-slots", "few"), "number of slots"),
    ]
    for option, remedy in refused:
        done = muniment("job", "add", SITE, *option, "--state", tmp_path / "tracker")
        assert (done.code, done.stdout) == (2, ""), option
        assert remedy in done.stderr, option
        assert "secret'" not in done.stderr
    for words, remedy in (
        (("job", "add", "https://ann:secret@example.com/"), "--auth-file"),
        (("job", "add", SITE, "--fetch", "x"), "either URLs or --fetch"),
        (("job", "add", "--fetch", "https://example.com/sitemap.xml"), "download it"),
        (("job", "add", "--fetch", "no-such-file"), "cannot be read"),
    ):
        done = muniment(*words, "--state", tmp_path / "tracker")
        assert done.code == 2, words
        assert remedy in done.stderr
        assert "secret" not in done.stderr
    jobs = muniment("job", "list", "--state", tmp_path / "tracker", "--json")
    assert jobs.code == 2 or jobs.stdout == "[]\n"


def test_places_and_tokens_that_make_no_sense(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "empty").write_text("\n")
    given = ("--token-file", "token")
    for words, text in (
        ((), "no place given"),
        (("--server", "http://127.0.0.1:1", "--state", "x", *given), "more than one place"),
        (("--server", "http://127.0.0.1:1"), "no token given"),
        (("--server", "http://127.0.0.1:1", "--token-file", "empty"), "does not hold a token"),
        (("--server", "http://127.0.0.1:1", "--token-file", "none"), "cannot be read"),
        (("--server", "http://ann:abc@127.0.0.1:1", *given), "more than its address"),
        (("--server", "http://127.0.0.1:1/?token=abc", *given), "more than its address"),
        (("--server", "http://192.0.2.1", *given), "--plain-http"),
        (("--server", "ftp://127.0.0.1", *given), "not the URL of a server"),
        (("--state", "nowhere"), "there is no tracker"),
        (("--state", ".", *given), "are for --server"),
        (("--token", "abc"), "No such option"),
    ):
        done = muniment("job", "list", *words)
        assert (done.code, done.stdout) == (2, ""), words
        assert text in done.stderr, done.stderr
        assert "abc" not in done.stderr


def test_a_server_that_refuses_is_frozen_or_away(muniment: Any, tmp_path: Path, serve: Any) -> None:
    for name, scope in ("boss", "admin"), ("guest", "read"):
        done = muniment("tokens", "add", name, "--scope", scope, "--state", "tracker")
        (tmp_path / name).write_text(done.stdout)
    process, url = serve("--state", "tracker")
    (tmp_path / "wrong").write_text("x" * 43)
    known, guest, wrong = (("--server", url, "--token-file", name) for name in ("boss", "guest", "wrong"))
    assert muniment("job", "add", SITE, *known).stdout == "1\n"
    for words, text in (
        (("job", "list", *wrong), "token"),
        (("job", "pause", "1", *guest), "scope"),
        (("tokens", "list", *guest), "scope admin"),
        (("job", "add", "http://127.0.0.1/", *known), "not a public address"),
        (("job", "list", "--state", "tracker"), "give --server"),
    ):
        done = muniment(*words)
        assert done.code == 2, words
        assert text in done.stderr
    process.send_signal(signal.SIGSTOP)
    _takes_ten_seconds_at_most(muniment, "job", "list", *known)
    process.send_signal(signal.SIGCONT)
    assert muniment("job", "show", "1", *known).code == 0
    process.kill()
    process.wait()
    _takes_ten_seconds_at_most(muniment, "job", "wait", "1", *known)


def _takes_ten_seconds_at_most(muniment: Any, *words: object) -> None:
    began = monotonic()
    done = muniment(*words)
    assert done.code == 3
    assert "does not answer" in done.stderr
    assert monotonic() - began < 20, "twice the time, for a slow machine"


def test_what_answers_is_no_server_of_ours(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    said: list[bytes] = []

    def answer(listening: socket.socket) -> None:
        for reply in ("200 OK", "404 No", "302 Go\r\nLocation: http://192.0.2.1/"):
            connection, _ = listening.accept()
            with connection:
                said.append(connection.recv(65_536))
                connection.sendall(f"HTTP/1.1 {reply}\r\nContent-Length: 2\r\n\r\n[]".encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        for _ in range(3):
            done = muniment(
                "job", "list", "--server", f"http://127.0.0.1:{listening.getsockname()[1]}", "--token-file", "token"
            )
            assert done.code == 2
            assert "does not answer as a Muniment server" in done.stderr
        thread.join(30)
    assert len(said) == 3


def test_a_crawl_in_a_directory_is_paused_ended_and_resumed(muniment: Any, tmp_path: Path) -> None:
    pages = {f"/{number}.html": f"page {number}" for number in range(40)}
    pages["/"] = "".join(f"<a href={path}>x</a>" for path in pages)
    with GatedSite(pages) as site:
        out = tmp_path / "out"
        crawl = ("crawl", site.url, "-o", out, "--delay", 200)
        running = muniment.start(*crawl)
        wait_until(lambda: len(site.requests) > 3, "requests")
        assert json.loads(muniment("job", "pause", "-o", out, "--json").stdout)["paused"]
        paused_at = len(site.requests)
        assert muniment("job", "set", "explanation=so", "delay=90", "-o", out).code == 0
        assert muniment("job", "ignore", "/39", "-o", out).code == 0
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 3
        before = len(site.requests)
        assert before <= paused_at + 10, "two seconds of requests, five a second"
        again = muniment.start(*crawl)
        wait_until(lambda: '"event":"pause"' in (out / "crawl.jsonl").read_text(), "a pause")
        wait_until(lambda: muniment("job", "show", "-o", out, "--quiet").code == 0, "a run")
        assert len(site.requests) == before, "nothing is asked for while it is paused, whatever restarts"
        assert muniment("job", "resume", "-o", out, "--quiet").code == 0
        wait_until(lambda: len(site.requests) > before + 4, "requests again")
        ended = json.loads(muniment("job", "abort", "-o", out, "--json").stdout)
        assert (ended["state"], ended["outcome"]) == ("ABORTED", "aborted")
        assert again.wait(30) == 3
        refused = muniment(*crawl)
        assert refused.code == 3
        assert f"muniment job resume -o {out}" in refused.stderr
        assert muniment("job", "resume", "-o", out).code == 0
        assert muniment(*crawl, "--quiet").code == 0
        assert json.loads(muniment("job", "show", "-o", out, "--json").stdout)["pages"]["captured"] == 40
        assert muniment("check", out, "--quiet").code == 0
        for words in ("job", "list"), ("job", "wait", 1), ("job", "add", SITE), ("job", "nice", 3, "--host", "h"):
            assert muniment(*words, "-o", out).code == 2
        for value in "nice=3", "tags=a", "max_slots=1":
            assert muniment("job", "set", value, "-o", out).code == 2


def test_a_tracker_is_of_a_crawl_or_of_a_fleet(muniment: Any, tmp_path: Path) -> None:
    with GatedSite({"/": "one page"}) as site:
        assert muniment("job", "add", site.url, "--state", "fleet").code == 0
        refused = muniment("crawl", site.url, "-o", "out", "--state", "fleet")
        assert refused.code == 2
        assert "tracker of a fleet" in refused.stderr
        assert muniment("crawl", site.url, "-o", "out", "--quiet").code == 0
        for words in ("job", "add", SITE, "--state", "out"), ("serve", "--listen", "127.0.0.1:0", "--state", "out"):
            refused = muniment(*words)
            assert refused.code == 2
            assert "tracker of the crawl" in refused.stderr
