"""The command line: what is given becomes settings; wrong use is one line and exit code 2."""

from __future__ import annotations

import click
import pytest

from muniment.cli import main
from muniment.cli.click_options import read_settings, setting_options
from muniment.settings.option_table import Command, DelayRange, Settings, defaults


def settings_of(*arguments: str, of: Command = "crawl") -> Settings:
    got = []

    @click.command()
    @setting_options(of)
    def command(**given):
        got.append(read_settings(of, given))

    command.main(list(arguments), standalone_mode=False)
    return got[0]


def complaint(capsys, *arguments: str) -> str:
    """The one line that wrong use prints."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    said = capsys.readouterr()
    assert (caught.value.code, said.out) == (2, "")
    assert said.err.startswith("muniment: ")
    assert said.err.count("\n") == 1
    return said.err


def test_nothing_given_is_the_defaults():
    assert settings_of() == Settings() == defaults("crawl")
    assert settings_of(of="fetch") == defaults("fetch")


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (["-o", "x"], "out", "x"),
        (["--out=x"], "out", "x"),
        (["-i", "-"], "input", "-"),
        (["--concurrency", "9"], "per_host", 9),
        (["--per-host", "9"], "per_host", 9),
        (["--level", "0"], "level", 0),
        (["--no-offsite-links"], "offsite_links", False),
        (["--no-robots"], "robots", False),
        (["--robots"], "robots", True),
        (["--warc-size", "1GiB"], "warc_size", 1 << 30),
        (["--min-free", "0"], "min_free", 0),
        (["--delay", "250-375"], "delay", DelayRange(250, 375)),
        (["--timeout", "1.5"], "timeout", 1.5),
        (["--ignore", "a", "--ignore", "b"], "ignore", ("a", "b")),
        (["--header", "A: b"], "header", ("A: b",)),
        (["--page-only"], "page_only", True),
        (["--max-time", "0.5"], "max_time", 0.5),
        (["--min-inflight", "7"], "min_inflight", 7),
        (["--start-inflight", "7"], "start_inflight", 7),
        (["--mode", "polite"], "mode", "polite"),
    ],
)
def test_options_become_settings(arguments, field, value):
    assert getattr(settings_of(*arguments), field) == value


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nonsense",), ("crawl", "--nonsense", "https://a.example/"), ("nonsense",), ("crawl",),
        ("crawl", "--per-host", "0", "https://a.example/"), ("crawl", "--per-host", "x", "https://a.example/"),
        ("crawl", "--level", "-1", "https://a.example/"), ("crawl", "--timeout", "0", "https://a.example/"),
        ("crawl", "--timeout", "nan", "https://a.example/"), ("crawl", "--delay", "9-1", "https://a.example/"),
        ("crawl", "--warc-size", "big", "https://a.example/"), ("crawl", "--mode", "x", "https://a.example/"),
        ("crawl", "ftp://a.example/"), ("crawl", "a.example"), ("crawl", "-i", "no-such-file"), ("why", "x"),
        ("inspect",), ("inspect", "no-such-path"), ("check", "no-such-path"), ("fetch", "list"), ("set",), ("ignores",),
        ("process",), ("crawl", "--log-level", "loud", "https://a.example/"),
        ("crawl", "--header", "no colon", "https://a.example/"), ("crawl", "--proxy", "ftp://x", "https://a.example/"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(capsys, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    complaint(capsys, *arguments)
    assert not list(tmp_path.iterdir()), "wrong use leaves nothing behind"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("Host: x", "that of each URL"), ("content-length: 5", "no body"), ("Transfer-Encoding: chunked", "no body"),
        ("Connection: close", "connections"), ("Upgrade: h2c", "connections"), ("Expect: 100-continue", "no body"),
        ("TE: trailers", "connections"), ("Trailer: X", "no body"), ("Accept-Encoding: br", "--http-compression"),
        ("User-Agent : me", "--user-agent"), ("Cookie: a=b", "--cookies"), ("Keep-Alive: 5", "connections"),
        ("Proxy-Authorization: Basic eDp5", "--proxy"), ("Proxy-Connection: close", "connections"),
    ],
)  # fmt: skip
def test_headers_that_are_ours_are_refused_with_what_to_do(capsys, header, said):
    told = complaint(capsys, "crawl", "--header", header, "https://a.example/")
    assert header.partition(":")[0].strip() in told
    assert said in told
    assert "eDp5" not in told


@pytest.mark.parametrize("agent", ["", "  ", "/1.0", " /x"])
def test_a_user_agent_names_a_product(capsys, agent):
    assert "has no product name" in complaint(capsys, "crawl", "--user-agent", agent, "https://a.example/")


def test_another_system_is_told_in_one_line(capsys, monkeypatch):
    monkeypatch.delattr("os.pidfd_open")
    assert "runs on Linux," in complaint(capsys, "crawl", "https://a.example/")


def test_a_host_without_scheme_is_met_with_a_hint(capsys):
    assert "did you mean https://a.example" in complaint(capsys, "crawl", "a.example")
    assert "did you mean https://a.example/" in complaint(capsys, "crawl", "//a.example/")
    assert "did you mean http://a.example:8080?" in complaint(capsys, "crawl", "a.example:8080")
    assert "did you mean" not in complaint(capsys, "crawl", "mailto:a@b.example")


@pytest.mark.parametrize("arguments", [("--help",), ("crawl", "--help"), ("fetch", "--help"), ("check", "-h")])
def test_help_is_on_standard_output(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    said = capsys.readouterr()
    assert (caught.value.code, said.err) == (0, "")
    assert "Usage: muniment" in said.out


def test_help_hides_what_is_not_for_hands(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "worker" not in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == "muniment 0.1.0\n"
