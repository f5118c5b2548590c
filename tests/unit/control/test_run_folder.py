"""Runs of a folder, asked for by several threads at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from muniment.control.runs.folder import RunFolder


def test_the_first_look_is_whole_for_all_who_ask(tmp_path: Path) -> None:
    for number in range(60):
        out = tmp_path / f"{number:02}"
        out.mkdir()
        (out / "crawl.jsonl").write_text(f'{{"ts":"2026-01-01T00:00:{number:02}.000Z","event":"start"}}\n')
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            folder = RunFolder([tmp_path], list)
            found = list(pool.map(folder.find, [1, 60] * 8))
            assert {one.name for one in found} == {"00", "59"}
