"""A process that may open too few files says so before it begins."""

from __future__ import annotations

import subprocess
import sys


def test_too_few_descriptors_are_refused_with_one_line(tmp_path):
    command = f"ulimit -n 32 && exec {sys.executable} -m muniment crawl http://127.0.0.1:9/ -o out"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "the limit of open files is 32, and 64 are needed: raise it with ulimit -n" in done.stderr
