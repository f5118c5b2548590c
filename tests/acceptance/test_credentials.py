"""Headers, accounts and the contact: each goes to the origins it is for, is told nowhere, and makes files private."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from crawled import complaint, run_muniment, wait_until
from tests.support.gated_site import Answer, GatedSite
from tests.support.raw_server import Certificate, RawServer, Send, make_certificate
from tests.support.redirect_sites import BasicWall
from warc_reading import captures, records

from muniment import __version__

LISTS = ("--tries", 1, "--rounds", 0, "--workers", 1, "--quiet")
PACE = ("--no-robots", "--no-sitemaps", *LISTS)
SECRET = "hush"
WALL = Send(b'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="x"\r\nContent-Length: 4\r\n\r\nwho?')


@pytest.fixture(autouse=True)
def own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is kept of command lines lies beside the rest; files are made as they are for most users."""
    monkeypatch.setenv("MUNIMENT_PROCESSES", str(tmp_path / "processes"))
    before = os.umask(0o022)
    yield
    os.umask(before)


def ok(text: str) -> tuple[Send]:
    body = text.encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
    return (Send(head + body),)


def moved(to: str) -> tuple[Send]:
    return (Send(f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()),)


def sent(server: RawServer, name: str) -> dict[str, list[str]]:
    """By path, the values of a header that came with each request."""
    found: dict[str, list[str]] = {}
    for entry in server.log:
        lines = entry.received.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(": ") for line in lines)
        found.setdefault(entry.path, []).extend(value for key, _, value in pairs if key.lower() == name.lower())
    return found


def said(server: RawServer, name: str) -> set[str]:
    return {value for values in sent(server, name).values() for value in values}


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path, "site", names="IP:127.0.0.1,IP:127.0.0.2")


@contextmanager
def serving(*addresses: str) -> Iterator[list[RawServer]]:
    """Plain servers whose pages do not matter."""
    servers = [RawServer(address=address, default=ok("")) for address in addresses]
    for server in servers:
        server.__enter__()
    try:
        yield servers
    finally:
        for server in servers:
            server.__exit__()


def listed(folder: Path, urls: Iterable[str], name: str = "list.txt") -> Path:
    (folder / name).write_text("".join(f"{url}\n" for url in urls))
    return folder / name


def told(tmp_path: Path) -> bytes:
    """Everything that a run leaves but the records of what was sent, and the files that it was given."""
    files = [path for path in tmp_path.rglob("*") if path.is_file() and ".warc.gz" not in path.name]
    return b"".join(path.read_bytes() for path in files if not path.name.startswith("given-"))


def warcinfo(out: Path) -> bytes:
    [record] = [one for one in records(next(out.glob("*.warc.gz"))) if one.type == "warcinfo"]
    return record.block


# -- headers


def test_an_added_header_goes_to_start_hosts_alone_but_harmless_ones(muniment: Any, tmp_path: Path) -> None:
    with serving("127.0.0.2", "127.0.0.1") as (other, home):
        page = f"<a href=/moved>m</a><img src={other.url('/img')}><a href={other.url('/page')}>p</a>"
        home.scripts = {"/": ok(page), "/moved": moved(other.url("/target")), "/robots.txt": ok("User-agent: *")}
        given = ("X-Plain: hush", "Authorization: Bearer hush", "Accept-Language: de", "DNT: 1", "from: me@a.example")
        options = [word for header in given for word in ("--header", header)]
        run_muniment(tmp_path, "crawl", home.url("/"), "-o", "out", *options, "--tries", 1, "--quiet")
        for name, value in (("X-Plain", SECRET), ("Authorization", "Bearer hush")):
            assert set(map(tuple, sent(home, name).values())) == {(value,)}
            assert said(other, name) == set()
        for name, value in (("Accept-Language", "de"), ("DNT", "1"), ("From", "me@a.example")):
            assert said(home, name) == said(other, name) == {value}
        assert {"/robots.txt", "/", "/moved"} <= set(sent(home, "X-Plain"))
        assert {"/robots.txt", "/img", "/page", "/target"} <= set(sent(other, "X-Plain"))
    stored = [one for path in (tmp_path / "out").glob("*.warc.gz") for one in records(path) if one.type == "request"]
    assert {one.url.split(":")[1][2:]: b"X-Plain: hush" in one.block for one in stored} == {
        "127.0.0.1": True,
        "127.0.0.2": False,
    }
    assert muniment("check", "out").code == 0
    assert SECRET.encode() not in told(tmp_path) + warcinfo(tmp_path / "out")


def test_headers_for_everybody_for_one_host_and_from_a_file(tmp_path: Path) -> None:
    with serving("127.0.0.1", "127.0.0.2", "127.0.0.3") as (home, second, third):
        home.scripts = {"/": ok(f"<img src={second.url('/')}><img src={third.url('/')}>")}
        (tmp_path / "given-headers").write_bytes(
            b"\xef\xbb\xbf# for the second alone\r\n127.0.0.2=X-Second: 2\r\n\r\n"
            + f"127.0.0.2:{second.port}=X-All: closest\n127.0.0.3:1=X-Port: no\nX-Start: 1".encode()
        )
        given = ("--header", "@given-headers", "--header", "*=X-All: all", "--header", "X-All: start")
        run_muniment(tmp_path, "crawl", home.url("/"), "-o", "out", *given, *PACE)
        assert [said(one, "X-All") for one in (home, second, third)] == [{"start"}, {"closest"}, {"all"}]
        assert [said(one, "X-Second") for one in (home, second, third)] == [set(), {"2"}, set()]
        assert [said(one, "X-Start") for one in (home, second, third)] == [{"1"}, set(), set()]
        assert said(third, "X-Port") == set()


def test_a_secret_header_for_nobody_is_refused_in_a_fetch_of_several_hosts(muniment: Any, tmp_path: Path) -> None:
    with serving("127.0.0.1", "127.0.0.2") as (one, other):
        several = listed(tmp_path, [one.url("/a"), "mailto:a@a.example", one.url("/b"), other.url("/c")])
        bare = ("--header", "X-Key: hush")
        for seed, typed in ((several, ""), ("-", several.read_text())):
            done = muniment("fetch", seed, "-o", "out", *bare, *LISTS, stdin=typed)
            line = complaint(done)
            assert all(words in line for words in ("X-Key", "127.0.0.1=", "127.0.0.2", "'*=X-Key: ...'"))
            assert SECRET not in line
            assert not (tmp_path / "out").exists()
        assert not one.log
        run_muniment(tmp_path, "fetch", several, "-o", "all", "--header", "*=X-Key: hush", *LISTS)
        assert said(one, "X-Key") == said(other, "X-Key") == {SECRET}
        of_one = listed(tmp_path, [one.url("/d"), one.url("/e")], "one.txt")
        run_muniment(tmp_path, "fetch", of_one, "-o", "one", *bare, *LISTS)
        assert sent(one, "X-Key")["/d"] == sent(one, "X-Key")["/e"] == [SECRET]
        run_muniment(tmp_path, "fetch", several, "-o", "harmless", "--header", "Accept-Language: de", *LISTS)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("hush", "is not a header"),
        (": hush", "is not a header"),
        ("X Y: hush", "is not a header"),
        ("X-Key: hush\r\nX-Evil: 1", "control character"),
        ("X-Key: hush\0", "is not a header"),
        ("X-Key: hush\x1b[2J", "control character"),
        ("a/b=X-Key: hush", "is not a header"),
        ("*.a.example=X-Key: hush", "is not a header"),
        ("https://a.example=X-Key: hush", "write 'NAME: VALUE', 'HOST=NAME: VALUE'"),
        ("a.example:99999=X-Key: hush", "is not a host"),
        ("a.example=Cookie: hush", "--cookies"),
        ("*=Host: hush", "the header Host cannot be given"),
        ("@missing", "the header file missing cannot be read: No such file"),
        ("@.", "the header file . cannot be read: Is a directory"),
        ("@given-binary", "is not UTF-8 text"),
        ("@given-large", "more than 65536 bytes"),
        ("@given-wrong", "line 2 of the header file given-wrong: '***' is not a header"),
        ("@given-split", "line 1 of the header file given-split"),
        ("@given-nested", "line 1 of the header file given-nested"),
    ],
)
def test_a_header_that_makes_no_sense_is_one_clear_line(muniment: Any, tmp_path: Path, header: str, words: str) -> None:
    for name, data in (
        ("binary", b"X: \xff\xfe"), ("large", b"X: hush\n" * 9000), ("wrong", b"X: 1\nhush\n"),
        ("split", b"X-Key: hush\rX-Evil: 1\n"), ("nested", b"@given-wrong\n"),
    ):  # fmt: skip
        (tmp_path / f"given-{name}").write_bytes(data)
    if "\0" in header:
        header = header.replace("\0", "\x01")
        words = "control character"
    line = complaint(muniment("crawl", "http://127.0.0.1:9/", "-o", "out", "--header", header))
    assert words in line
    assert SECRET not in line
    assert not (tmp_path / "out").exists()


def test_values_beyond_ascii_go_out_in_utf8_and_twice_the_same_name_twice(tmp_path: Path) -> None:
    with serving("127.0.0.1") as (home,):
        given = ("--header", "X-Word: \u20ac\u00e9", "--header", "X-Two: 1", "--header", "X-Two: 2")
        run_muniment(tmp_path, "crawl", home.url("/"), "-o", "out", *given, *PACE)
        assert said(home, "X-Word") == {"\u20ac\u00e9".encode().decode("latin-1")}
        assert sent(home, "X-Two")["/"] == ["1", "2"]


# -- https


def test_nothing_secret_of_an_https_start_goes_out_in_the_clear_or_to_another_port(
    certificate: Certificate, tmp_path: Path
) -> None:
    (tmp_path / "given-netrc").write_text("machine 127.0.0.1 login me password hush")
    with (
        RawServer(default=(WALL,)) as plain,
        RawServer(default=(WALL,), certificate=certificate) as elsewhere,
        RawServer(default=(WALL,), certificate=certificate) as home,
    ):
        links = "".join(f"<a href={one.url('/x')}>x</a><img src={one.url('/y')}>" for one in (plain, elsewhere))
        page = ok(links + "<a href=/down>d</a>")
        home.turns = {"/": ((WALL,), page)}
        home.scripts = {"/down": moved(plain.url("/z"))}
        given = ("--header", "X-Key: hush", "--header", "127.0.0.1=X-Host: hush", "--auth-file", "given-netrc")
        run_muniment(tmp_path, "crawl", home.url("/"), "-o", "out", "--insecure", *given, *PACE)
        assert said(home, "X-Key") == said(home, "X-Host") == {SECRET}
        assert len(said(home, "Authorization")) == 1
        for one in (plain, elsewhere):
            assert {"/x", "/y"} <= set(sent(one, "X-Key"))
            assert said(one, "X-Key") == said(one, "X-Host") == said(one, "Authorization") == set()
        assert "/z" in sent(plain, "X-Key")


def test_a_port_that_was_named_is_one_but_not_over_http(certificate: Certificate, tmp_path: Path) -> None:
    with (
        RawServer(default=ok("")) as plain,
        RawServer(default=ok(""), certificate=certificate) as elsewhere,
        RawServer(default=ok(""), certificate=certificate) as home,
    ):
        home.scripts = {"/": ok(f"<img src={plain.url('/')}><img src={elsewhere.url('/')}>")}
        given = [f"127.0.0.1:{one.port}=X-Key: {one.port}" for one in (plain, elsewhere)]
        options = [word for header in given for word in ("--header", header)]
        run_muniment(tmp_path, "crawl", home.url("/"), "-o", "out", "--insecure", *options, *PACE)
        assert [said(one, "X-Key") for one in (plain, elsewhere, home)] == [set(), {str(elsewhere.port)}, set()]


def test_a_cookie_over_http_replaces_no_secure_one(certificate: Certificate, tmp_path: Path) -> None:
    def setting(cookie: str, link: str) -> tuple[Send]:
        [page] = ok(f"<a href={link}>next</a>")
        return (Send(page.data.replace(b"\r\n", f"\r\nSet-Cookie: {cookie}\r\n".encode(), 1)),)

    with RawServer() as plain, RawServer(certificate=certificate) as home:
        home.scripts = {"/": setting("a=good; Secure; Path=/", plain.url("/")), "/last": ok("")}
        plain.scripts = {"/": setting("a=evil; Path=/", home.url("/last"))}
        starts = (home.url("/"), plain.url("/x"))
        run_muniment(tmp_path, "crawl", *starts, "-o", "out", "--insecure", *PACE)
        assert sent(plain, "Cookie")["/"] == []
        assert sent(home, "Cookie")["/last"] == ["a=good"]
    assert "evil" not in (tmp_path / "out" / "cookies.txt").read_text()


# -- accounts in URLs


def with_account(url: str, account: str = "m%20e:hu%3Ash") -> str:
    return url.replace("://", f"://{account}@", 1)


SITE = {"/": "<a href=/a>a</a>", "/a": "a"}


@pytest.mark.parametrize("given", ["argument", "file", "stdin"])
def test_an_account_in_a_start_url_is_used_for_its_origin_and_told_nowhere(
    muniment: Any, tmp_path: Path, given: str
) -> None:
    with BasicWall({"/": ""}, "m e", "hu:sh") as other, BasicWall(SITE, "m e", "hu:sh") as site:
        site.pages["/b"] = f"<a href={other.url}>other port</a>"
        url = with_account(site.url)
        (tmp_path / "given-list").write_text(f"{url}\n{site.url}b\n")
        starts = {"argument": (url, f"{site.url}b"), "file": ("-i", "given-list"), "stdin": ("-i", "-")}[given]
        typed = (tmp_path / "given-list").read_text() if given == "stdin" else ""
        done = muniment("crawl", *starts, "-o", "out", *PACE[:-1], stdin=typed)
        assert done.code == 0, done.stderr
        assert [bool(one) for one in site.authorizations] == [False, True, True]
        assert other.authorizations == [""]
    rows = captures(tmp_path / "out")
    assert {(row["url"], row["status"]) for row in rows} >= {(site.url, 200), (other.url, 401)}
    assert not any("@" in row["url"] for row in rows)
    everything = told(tmp_path) + warcinfo(tmp_path / "out") + (done.stdout + done.stderr).encode()
    assert b"hu%3Ash" not in everything
    assert b"hu:sh" not in everything
    if given == "argument":
        assert f"http://***@{site.url[7:]}".encode() in warcinfo(tmp_path / "out")


@pytest.mark.parametrize("kind", ["lines", "jsonl", "parquet", "stdin"])
def test_accounts_in_a_list_are_used_each_for_its_origin(muniment: Any, tmp_path: Path, kind: str) -> None:
    with BasicWall(SITE, "me", "hush") as site, BasicWall(SITE, "you", "hush") as other:
        urls = [with_account(site.url, "me:hush"), f"{site.url}a", with_account(other.url, "you:hush"), other.url]
        seed: Path | str = listed(tmp_path, urls, "given-list")
        if kind == "jsonl":
            seed = listed(tmp_path, [json.dumps({"url": url}).replace("/", "\\/") for url in urls], "given-list.jsonl")
        elif kind == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            seed = tmp_path / "given-list.parquet"
            pq.write_table(pa.table({"url": urls}), seed)
        typed = seed.read_text() if kind == "stdin" and isinstance(seed, Path) else ""
        done = muniment("fetch", "-" if kind == "stdin" else seed, "-o", "out", *LISTS[:-1], stdin=typed)
        assert done.code == 0, done.stderr
    rows = captures(tmp_path / "out")
    assert {row["url"] for row in rows if row["status"] == 200} == {site.url, f"{site.url}a", other.url}
    for path in (tmp_path / "out").iterdir():
        assert mode(path) == 0o600
        assert path.name == "seed-list" or SECRET.encode() not in path.read_bytes()
    assert SECRET not in done.stderr


def test_an_account_in_the_url_of_a_sitemap(muniment: Any, tmp_path: Path) -> None:
    xml = "<?xml version='1.0'?><urlset><url><loc>{}</loc></url></urlset>"
    with BasicWall({"/s.xml": "", "/a": "a"}, "me", "hush") as site:
        wall = site.pages["/s.xml"]
        assert callable(wall)

        def sitemap(headers: Any) -> Answer:
            answer: Answer = wall(headers)
            kind = (("Content-Type", "application/xml"),)
            return Answer(xml.format(f"{site.url}a"), headers=kind) if answer.status == 200 else answer

        site.pages["/s.xml"] = sitemap
        done = muniment("fetch", with_account(f"{site.url}s.xml", "me:hush"), "-o", "out", *LISTS)
        assert done.code == 0, done.stderr
    assert {(row["url"], row["status"]) for row in captures(tmp_path / "out")} >= {(f"{site.url}a", 200)}
    assert SECRET.encode() not in told(tmp_path) + warcinfo(tmp_path / "out")


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        (["http://me:hu/sh@a.example/"], "is not an http or https URL"),
        (["me:hu/sh@a.example/"], "is not an http or https URL"),
        (["http://me:hush@a.example/", "http://me:other@a.example/x"], "there are two accounts for http://a.example"),
    ],
)
def test_accounts_that_make_no_sense(muniment: Any, tmp_path: Path, urls: list[str], words: str) -> None:
    line = complaint(muniment("crawl", *urls, "-o", "out"))
    assert words in line
    assert not any(part in line for part in (SECRET, "hu/sh", "other"))
    # of another scheme it would be a URL like any other
    seed = listed(tmp_path, [url for url in urls if url.startswith("http")], "given-list")
    done = muniment("fetch", seed, "-o", "out", *LISTS[:-1])
    assert "hu/sh" not in done.stderr
    assert b"hu/sh" not in told(tmp_path)


# -- files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def readable(out: Path) -> set[str]:
    """What others may read."""
    return {path.name for path in (out, *out.rglob("*")) if mode(path) & 0o077 and not path.is_socket()}


@pytest.fixture
def netrc(tmp_path: Path) -> Path:
    (tmp_path / "given-netrc").write_text("machine a.example login me password hush")
    (tmp_path / "given-cookies").write_text("a.example\tTRUE\t/\tFALSE\t0\ta\thush\n")
    return tmp_path


@pytest.mark.usefixtures("netrc")
@pytest.mark.parametrize(
    "given",
    [
        ("--header", "X-Plain: hush"),
        ("--header", "*=X-Plain: hush"),
        ("--auth-file", "given-netrc"),
        ("--cookies", "given-cookies"),
        ("--proxy", "*.onion=socks5h://me:hush@127.0.0.1:9"),
        (),
        ("--header", "Accept-Language: de"),
    ],
)
def test_once_a_secret_was_given_files_are_their_owners(muniment: Any, tmp_path: Path, given: tuple[str, ...]) -> None:
    out = tmp_path / "out" / "deeper"
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}, held=["/a"]) as site:
        run = muniment.start("crawl", site.url, "-o", out, *given, *PACE)
        site.wait_for("/a")
        wait_until(lambda: any(out.glob("*.open")), "a WARC file")
        running = readable(out)
        site.release("/a")
        assert run.wait(60) == 0
    secret = bool(given) and "Accept-Language: de" not in given
    if secret:
        assert running | readable(out) == set()
        assert mode(tmp_path / "out") == 0o700
    else:
        assert {"parts", "crawl.jsonl", "deeper"} <= running
        assert {"muniment-00000.warc.gz", "captures.parquet", "deeper"} <= readable(out)


def test_also_on_resume_with_and_without_the_secret(muniment: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ("--header", "X-Key: hush")
    with GatedSite({"/": "".join(f"<a href=/{n}>x</a>" for n in range(4)), **{f"/{n}": "p" for n in range(4)}}) as site:

        def run(pages: int, *options: str, code: int = 3) -> None:
            run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--max-pages", pages, *PACE, *options, code=code)

        run(1)
        assert {"muniment-00000.warc.gz", "crawl.jsonl", "tracker.sqlite"} <= readable(out)
        run(2, *given)
        before = {"out", "muniment-00000.warc.gz"}  # made by the run without a secret
        assert readable(out) == before
        (out / "crawl.jsonl").unlink()  # it is not alone in saying so
        run(3)
        assert readable(out) == before
        run(9, code=0)
        assert readable(out) == before
    (out / "captures.parquet").unlink()
    assert muniment("check", "out", "--repair").code == 0
    assert readable(out) == before


# -- contact


@pytest.mark.parametrize(
    ("options", "environment", "agent"),
    [
        ((), "", f"muniment/{__version__}"),
        (("--contact", "https://a.example/bot"), "", f"muniment/{__version__} (+https://a.example/bot)"),
        (("--contact", "me@a.example"), "https://b.example/", f"muniment/{__version__} (+me@a.example)"),
        ((), "me@b.example", f"muniment/{__version__} (+me@b.example)"),
        (("--contact", "me@a.example", "--user-agent", "mine/1"), "", "mine/1 (+me@a.example)"),
        (("--contact", "me@a.example", "--user-agent", "mine/1 me@a.example"), "", "mine/1 me@a.example"),
    ],
)
def test_the_contact_stands_in_the_agent_and_in_warcinfo(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    environment: str,
    agent: str,
) -> None:
    monkeypatch.setenv("MUNIMENT_CONTACT", environment)
    with serving("127.0.0.1") as (home,):
        run_muniment(tmp_path, "crawl", home.url("/"), "-o", "out", *options, "--tries", 1, "--quiet")
        assert said(home, "User-Agent") == {agent}
    info = dict(line.split(": ", 1) for line in warcinfo(tmp_path / "out").decode().splitlines())
    assert info["http-header-user-agent"] == agent
    contact = options[1] if options else environment
    assert contact in info["operator"]
    assert "invalid" not in str(info)


@pytest.mark.parametrize("given", ["hush", "ftp://a.example/", "https://", "https://me:hush@a.example/", "a b@c.d"])
def test_what_is_no_contact_is_refused(muniment: Any, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    words = "is not a contact; give a URL (https://...) or a mail address"
    line = complaint(muniment("crawl", "http://127.0.0.1:9/", "--contact", given))
    assert words in line
    assert complaint(muniment("crawl", "http://127.0.0.1:9/", "--contact", "me@a.example\r\nX: 1")).endswith(
        f"{words}\n"
    )
    monkeypatch.setenv("MUNIMENT_CONTACT", given)
    line = complaint(muniment("crawl", "http://127.0.0.1:9/"))
    assert "MUNIMENT_CONTACT" in line
    assert words in line
