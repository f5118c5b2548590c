"""The commands of runs, as rows of processes keep them."""

from pathlib import Path

import pytest

from muniment.control.runs.known_runs import RunCommand


@pytest.mark.parametrize(
    ("arguments", "lack"),
    [
        (("crawl", "https://example.com/", "-o", "out"), ""),
        (("crawl", "https://example.com/", "--header", "Authorization: ***"), "--header is secret"),
        (("crawl", "https://example.com/", "--proxy=http://***@proxy:80"), "--proxy is secret"),
        (("crawl", "https://***@example.com/", "-o", "out"), "the account of a URL is secret"),
        (("fetch", "-", "-o", "out"), "standard input"),
        (("crawl", "-i", "-", "-o", "out"), "standard input"),
    ],
)
def test_what_a_command_cannot_be_given_again_without(tmp_path: Path, arguments: tuple[str, ...], lack: str) -> None:
    found = RunCommand(arguments, str(tmp_path)).lack
    assert lack in found and bool(lack) == bool(found)


def test_a_command_whose_directory_is_gone(tmp_path: Path) -> None:
    assert "is gone" in RunCommand(("crawl", "https://example.com/"), str(tmp_path / "gone")).lack
