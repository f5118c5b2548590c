"""What is written down of arguments and environments: no secret, and nothing that a shell would carry out."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.procs.command_text import MASK, plain_text, script_of, told_command, told_environment


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--header", "Cookie: a=b"], ["--header", f"Cookie: {MASK}"]),
        (["--header", "X-Plain: hush"], ["--header", f"X-Plain: {MASK}"]),
        (["--header", "*=X-Plain: hush", "x"], ["--header", f"*=X-Plain: {MASK}", "x"]),
        (["--headers", "X: hush"], ["--headers", f"X: {MASK}"]),
        (["set", "header=X: hush"], ["set", f"header=X: {MASK}"]),
        (["--header", "--hush"], ["--header", MASK]),
        (["--header", "@file"], ["--header", "@file"]),
        (["--proxy", "*.a=http://me:my hush@p:1/"], ["--proxy", f"*.a=http://{MASK}@p:1/"]),
        (["--proxy", "http://me:hush@p:1/"], ["--proxy", f"http://{MASK}@p:1/"]),
        (["--password=hush"], [f"--password={MASK}"]),
        (["--password", "hush", "x"], ["--password", MASK, "x"]),
        (["--token", "--verbose"], ["--token", "--verbose"]),
        (["API_KEY=hush", "x=1"], [f"API_KEY={MASK}", "x=1"]),
        (["https://e.com/?a=1&api_key=hush&b=2"], [f"https://e.com/?a=1&api_key={MASK}&b=2"]),
        (["--auth-file", "netrc", "--cookies", "c.txt"], ["--auth-file", "netrc", "--cookies", "c.txt"]),
        (["https://e.com/supervisord?author=me"], ["https://e.com/supervisord?author=me"]),
    ],
)
def test_secrets_in_arguments_are_masked(given, told):
    assert list(told_command(given)) == told


def test_of_the_environment_only_what_says_how_it_ran_is_told():
    given = {
        "PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "hush", "DATABASE_URL": "postgres://me:hush@h/d",
        "MUNIMENT_TOKEN": "hush", "XDG_STATE_HOME": "/s", "PGPASSWORD": "hush", "MUNIMENT_URL": "http://me:hush@h/",
    }  # fmt: skip
    told = dict(told_environment(given))
    assert "hush" not in str(told)
    assert told == {
        "PATH": "/bin", "LC_ALL": "C", "MUNIMENT_TOKEN": MASK, "XDG_STATE_HOME": "/s",
        "MUNIMENT_URL": f"http://{MASK}@h/",
    }  # fmt: skip


@given(st.text())
def test_any_text_can_be_stored(text):
    stored = plain_text(text + "\0\ud800")
    assert "\0" not in stored
    assert stored.encode().decode() == stored


@pytest.mark.parametrize(
    "word", ["$(touch made)", "`touch made`", "a; touch made", 'it\'s\n"so"', "", "-n", "*", "a&b|c"]
)
def test_a_script_says_the_words_and_carries_none_out(tmp_path, word):
    (tmp_path / "s").write_text(script_of(["printf", "%s|", word, "end"], str(tmp_path)))
    done = subprocess.run(["sh", tmp_path / "s"], cwd=tmp_path, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == f"{word}|end|"
    assert not (tmp_path / "made").exists()
