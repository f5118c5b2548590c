"""Names with bytes that are not UTF-8, no home directory, no locale: it works, or one line says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.support.gated_site import GatedSite
from warc_reading import captures, records

from forked import Forked, ForkedWithChildren, started_with

pytestmark = pytest.mark.long  # its tests stay together

ODD = os.fsdecode(b"d\xff")
URL = "http://127.0.0.1:9/"
PIPES: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
}
LOCALES = ("C", "POSIX", "xx_XX.UTF-9", "en_US.ISO-8859-1")
ASCII = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def words_of(arguments: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", "muniment", *map(str, arguments)]


def ran(
    *arguments: object, cwd: Path, drop: tuple[str, ...] = (), launch: Any = subprocess.Popen, **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """A command as users give it, or a fork, with the bytes that it writes."""
    given = {name: value for name, value in {**os.environ, **environ}.items() if name not in drop}
    command = words_of(arguments)
    with launch(command, cwd=cwd, env=given, **PIPES) as process:
        stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


@pytest.fixture(scope="module")
def site() -> Iterator[GatedSite]:
    with GatedSite({"/": "a page"}) as site:
        yield site


@pytest.fixture(scope="module")
def crawled(site: GatedSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a finished crawl in `out`."""
    top = tmp_path_factory.mktemp("crawled")
    assert crawl(site, top).returncode == 0
    return top


def crawl(site: GatedSite, cwd: Path, *more: object, **how: Any) -> subprocess.CompletedProcess[bytes]:
    return ran("crawl", site.url, "-o", "out", "--no-robots", "--quiet", *more, cwd=cwd, **how)


@pytest.mark.parametrize("json_too", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("crawl", URL, "-o", ODD),
        ("crawl", URL, "--state", ODD),
        ("crawl", URL, "--user-agent", ODD),
        ("crawl", URL, "--ignore", ODD),
        ("crawl", "-i", ODD),
        ("crawl", f"{URL}{ODD}"),
        ("fetch", ODD),
        ("fetch", "-", "-o", ODD),
        ("check", ODD),
        ("check", ODD, "--repair"),
        ("inspect", ODD),
        ("why", URL, "-o", ODD),
        ("set", "-o", ODD, "per-host=1"),
        ("set", "-o", ".", f"per-host={ODD}"),
        ("ignores", "show", ODD),
        ("ignores", "add", "-o", ".", ODD),
        ("process", "show", ODD),
        ("process", "list", "--database", f"postgresql://x/{ODD}"),
        (ODD,),
    ],
)
def test_an_argument_that_is_no_text_is_refused_in_one_line(
    arguments: tuple[str, ...], json_too: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / ODD).mkdir()
    with Forked(words_of((*arguments, *json_too)), cwd=tmp_path, text=True, **PIPES) as process:
        stdout, said = process.communicate(timeout=60)
    assert (process.returncode, stdout, said.count("\n")) == (2, "", 1), said
    said = json.loads(said)["error"] if json_too else said
    assert r"d\xff' has bytes that are not UTF-8" in said
    assert [path.name for path in tmp_path.iterdir()] == [ODD]
    assert list((tmp_path / ODD).iterdir()) == []


def test_a_secret_that_is_no_text_is_not_shown(tmp_path: Path) -> None:
    for secret in ("Authorization: hush", "X-Plain: hush", "https://me:hush@x/"):
        done = ran("crawl", URL, "--header", f"{secret}{ODD}", cwd=tmp_path, launch=Forked)
        assert (done.returncode, b"hush" in done.stderr) == (2, False)
        assert b"has bytes that are not UTF-8" in done.stderr


def test_a_directory_below_an_odd_one(site: GatedSite, crawled: Path, tmp_path: Path) -> None:
    """A run, which names it in its rows, is refused before it leaves anything; a link helps, and who reads reads."""
    odd = tmp_path / ODD
    odd.mkdir()
    done = crawl(site, odd)
    assert (done.returncode, done.stderr.count(b"\n"), list(odd.iterdir())) == (2, 1, [])
    assert b"or a link with another name" in done.stderr
    (tmp_path / "link").symlink_to(odd)
    assert ran("crawl", site.url, "-o", "link/out", "--no-robots", "--quiet", cwd=tmp_path).returncode == 0
    shutil.rmtree(odd / "out")
    shutil.copytree(crawled / "out", odd / "out")
    for command in (("check", "out"), ("inspect", "out"), ("why", site.url, "-o", "out"), ("ignores", "list")):
        for more, launch in (((), subprocess.Popen), (("--json",), Forked)):
            done = ran(*command, *more, cwd=odd, launch=launch)
            assert (done.returncode, done.stderr) == (0, b""), command
    refused = ran("set", "-o", "out", "per-host=1", cwd=odd)
    assert (refused.returncode, refused.stderr.count(b"\n")) == (2, 1)


def test_files_with_odd_names_are_checked_and_named(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / os.fsdecode(b"x\xff.warc.gz")).write_bytes(b"no gzip")
    done = ran("check", "plain", cwd=tmp_path)
    assert (done.returncode, done.stdout.split(b":")[0], done.stderr) == (1, rb"x\xff.warc.gz", b"")
    answer = json.loads(ran("check", "plain", "--json", cwd=tmp_path, launch=Forked).stdout)
    assert {fault["file"] for fault in answer["faults"]} == {r"x\xff.warc.gz"}


def test_variables_that_are_no_text(site: GatedSite, tmp_path: Path) -> None:
    odd = dict.fromkeys(("USER", "LOGNAME", "TERM", "TZ", "PYTHONX", "MUNIMENT_X", "LC_X", "MUNIMENT_OPERATOR"), ODD)
    done = crawl(site, tmp_path, **odd)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    [info] = [one for file in (tmp_path / "out").glob("*.warc.gz") for one in records(file) if one.type == "warcinfo"]
    assert b"operator: d?\r\n" in info.block


@pytest.mark.parametrize("variable", ["MUNIMENT_PROCESSES", "XDG_STATE_HOME", "HOME"])
def test_a_home_whose_name_is_no_text_keeps_no_rows(
    site: GatedSite, crawled: Path, tmp_path: Path, variable: str
) -> None:
    order = ("MUNIMENT_PROCESSES", "XDG_STATE_HOME", "HOME")
    environ = {variable: str(tmp_path / ODD)}
    drop = order[: order.index(variable)]
    how: dict[str, Any] = {"drop": drop, "launch": ForkedWithChildren, **environ}  # Muniment reads them, not Python
    done = [crawl(site, tmp_path, **how), ran("check", "out", cwd=crawled, **how)]
    for one in done:
        assert (one.returncode, one.stderr.count(b"\n")) == (0, 1), one
        assert b"set MUNIMENT_PROCESSES=DIR" in one.stderr
    assert not (tmp_path / ODD).exists()
    refused = ran("process", "list", cwd=tmp_path, **how)
    assert (refused.returncode, refused.stdout, refused.stderr.count(b"\n")) == (2, b"", 1)


def test_a_user_who_is_not_known_and_has_no_home(site: GatedSite, crawled: Path, tmp_path: Path) -> None:
    """A user is not known in a new namespace of users, for nobody has named it there."""
    unknown = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
    given = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    (tmp_path / "home").mkdir(mode=0o777)
    for code, command in (
        (0, ("crawl", site.url, "-o", tmp_path / "home" / "out", "--no-robots", "--quiet")),
        (0, ("check", tmp_path / "home" / "out")),
        (0, ("why", site.url, "-o", tmp_path / "home" / "out")),
        (0, ("ignores", "list")),
        (2, ("process", "list")),
    ):
        whole = [*unknown, sys.executable, "-m", "muniment", *map(str, command)]
        done = subprocess.run(whole, cwd=tmp_path, env=given, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr.count(b"\n")) == (code, 1), (command, done)
        assert b"there is no home directory for the store of processes" in done.stderr


def read_of_locale(launch: type[subprocess.Popen[str]], environ: Mapping[str, str]) -> str:
    """What Python has made of its locale."""
    asked = "import sys; print([(one.encoding, one.errors) for one in (sys.stdin, sys.stdout, sys.stderr)], "
    asked += "sys.getfilesystemencoding(), sys.flags.utf8_mode)"
    with launch([sys.executable, "-c", asked], env=environ, text=True, **PIPES) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return said


@pytest.mark.parametrize("more", [{}, ASCII], ids=["as Python has it", "ascii"])
@pytest.mark.parametrize("locale", LOCALES)
def test_every_command_works_without_a_locale(
    site: GatedSite, tmp_path: Path, locale: str, more: Mapping[str, str]
) -> None:
    """Python is started once in each, and forked for each command; with the least of all, each command starts it."""
    how: dict[str, Any] = {"LC_ALL": locale, "LANG": locale, **more}
    (tmp_path / "list").write_text(f"{site.url}?\N{LATIN SMALL LETTER E WITH ACUTE}\n", "utf-8")
    given = {**os.environ, **how, "MUNIMENT_PROCESSES": str(tmp_path / "kept")}
    there = nullcontext(subprocess.Popen) if (locale, more) == ("C", ASCII) else started_with(how)
    with there as launch:
        assert read_of_locale(launch, given) == read_of_locale(subprocess.Popen, given)
        for command in (
            ("crawl", site.url, "-o", "out", "--no-robots"),
            ("fetch", "list", "-o", "fetched"),
            ("inspect", "out"),
            ("check", "fetched"),
            ("why", site.url, "-o", "out"),
            ("ignores", "show", "global"),
            ("process", "tree", "--all"),
        ):
            with launch(words_of(command), cwd=tmp_path, env=given, text=True, **PIPES) as process:
                _, said = process.communicate(timeout=60)
            assert process.returncode == 0, (command, said)
            assert "Traceback" not in said
    assert [row["url"] for row in captures(tmp_path / "fetched")] == [f"{site.url}?%C3%A9"]


def test_where_letters_are_missing_a_name_asks_for_a_locale(tmp_path: Path) -> None:
    name = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    done = ran("check", name, cwd=tmp_path, LC_ALL="C", **ASCII)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"cannot be read in this locale; set LC_ALL=C.UTF-8" in done.stderr
