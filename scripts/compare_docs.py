#!/usr/bin/env python3
"""List the names that the documents of one version have and those of another lack.

Usage: scripts/compare_docs.py OLD [NEW]      two commits; without NEW the files of this checkout

The exit status is 1 when a name of a user's interface is gone: an option, event, column, exit code, error code, state
or table. All other words that were quoted as code and are gone are printed, for somebody to look at.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HELD = re.compile(r"--[a-z][a-z-]+|[A-Z_]{4,}|[a-z]+(?:[-_][a-z]+)*")
"""What a name of the interface looks like: an option, a state or variable, a column, event, code or table."""
INTERFACE = {
    "docs/options.md": re.compile(r"(--[a-z][a-z-]+|^-[a-z]\b)"),
    "docs/output.md": re.compile(r"^\| (.+?) \|"),
    "docs/check.md": re.compile(r"^\| (.+?) \|"),
    "docs/api.md": re.compile(r"^\| (.+?) \| (.+?) \|"),
    "docs/tracker.md": re.compile(r"^\| (.+?) \|"),
    "docs/ignores.md": re.compile(r"^\| (.+?) \|"),
}
"""Pages whose options or tables are the interface, and what of a line is a name of it."""


def pages(commit: str | None) -> dict[str, str]:
    """The documents of a commit, or of the checkout, by their paths."""
    if commit is None:
        paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    listed = _git("ls-tree", "-r", "--name-only", commit).splitlines()
    names = [name for name in listed if name.endswith(".md") and ("/" not in name or name.startswith("docs/"))]
    return {name: _git("show", f"{commit}:{name}") for name in names}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def quoted(text: str) -> set[str]:
    """Every word that is quoted as code, blocks left out."""
    plain = re.sub(r"(?ms)^```.*?^```$", "", text)
    return {word.strip(",;:") for code in re.findall(r"`([^`\n]+)`", plain) for word in code.split()}


def interface(found: dict[str, str]) -> set[str]:
    """The names of the interface that the pages define."""
    names: set[str] = set()
    for page, pattern in INTERFACE.items():
        for line in found.get(page, "").splitlines():
            for match in pattern.finditer(line):
                cell = " ".join(group for group in match.groups() if group)
                words = re.findall(r"`([^`]+)`", cell) or [cell]
                names |= {one for word in words for one in HELD.findall(word) if "`" in cell or one.startswith("-")}
    numbers = re.findall(r"(?m)^\| ([0-4]) \| ", found.get("docs/options.md", ""))
    return names | {f"exit code {number}" for number in numbers}


def main(old: str, new: str | None = None) -> int:
    """Print what is gone; 1 when a name of the interface is."""
    before, after = pages(old), pages(new)
    text = "\n".join(after.values())
    kept = {name for word in quoted(text) for name in (word.strip("[]"), *HELD.findall(word))} | interface(after)
    kept |= set(re.findall(r"--[a-z][a-z-]+", text))
    lost = sorted(interface(before) - kept)
    words = kept | set(re.findall(r"[\w.-]+", text))
    others = sorted(quoted("\n".join(before.values())) - words - set(lost))
    print(f"{len(interface(before))} names of the interface, {len(lost)} gone: {' '.join(lost)}")
    print(f"{len(others)} other quoted words gone:\n" + "\n".join(others))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
