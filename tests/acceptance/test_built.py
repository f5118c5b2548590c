"""The web site of the documents builds without a warning."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.long

UNCOMPILED = {**os.environ, "PIP_NO_COMPILE": "0"}
"""To compile whole environments of which a few modules run takes longer than all else. Pip takes 0 as yes here."""


def test_the_site_has_every_page_and_no_warning(tmp_path: Path) -> None:
    script = [ROOT / "scripts" / "site", tmp_path / "site"]
    done = subprocess.run(script, env=UNCOMPILED, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    built = [tmp_path / "site" / path.relative_to(ROOT).with_suffix(".html") for path in pages]
    assert [str(page) for page in built if not page.exists()] == []
    assert "docs/index.html" in (tmp_path / "site" / "index.html").read_text()
    assert 'id="muniment-crawl"' in (tmp_path / "site" / "docs" / "options.html").read_text()
