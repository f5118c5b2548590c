"""Names of files: each is given out once, whatever became of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.archive.names import named, packed, parted, unpacked
from muniment.crawl.orchestrator.file_names import FileNames


def of(*numbers: int, prefix: str = "a") -> list[str]:
    return [named(prefix, number) for number in numbers]


def taken(names: FileNames, count: int) -> list[str]:
    return [names.take() for _ in range(count)]


def test_a_new_directory_begins_at_zero(tmp_path: Path) -> None:
    names = FileNames(tmp_path, "a")
    assert taken(names, 3) == of(0, 1, 2)
    names.give_back(named("a", 1))
    assert taken(names, 2) == of(1, 3)


def test_what_the_index_knows_is_given_to_nobody(tmp_path: Path) -> None:
    names = FileNames(tmp_path, "a")
    names.begin(of(0, 2), of(4))
    names.give_back(named("a", 0))
    names.give_back(named("a", 4))
    assert taken(names, 4) == of(1, 3, 4, 5)


def test_files_of_others_are_passed_over(tmp_path: Path) -> None:
    for name in (*of(1, 99_999_999), named("a", 3) + ".open", "a-2.warc.gz", "b-20261124.warc.gz"):
        (tmp_path / name).touch()
    names = FileNames(tmp_path, "a")
    names.begin(of(0), [])
    assert taken(names, 3) == of(2, 4, 5)
    assert len(names.sizes()) == 2, "those of the own prefix"


def test_every_prefix_has_numbers_of_its_own(tmp_path: Path) -> None:
    names = FileNames(tmp_path, "b")
    names.begin(of(0, 3), of(5))
    names.give_back(named("a", 5))
    assert taken(names, 2) == of(0, 1, prefix="b")


def test_without_the_index_nobody_knows_what_was_free(tmp_path: Path) -> None:
    names = FileNames(tmp_path, "a")
    names.begin(of(2), [], whole=False)
    assert taken(names, 2) == of(3, 4)
    names.give_back(named("a", 3))
    assert taken(names, 2) == of(3, 5)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a-00000.warc.gz", ("a", 0)),
        ("a-b-00001-123456.warc.gz", ("a-b-00001", 123456)),
        ("a-0001.warc.gz", None),
        ("a-000001.warc.gz", None),
        ("a-00001.warc.gz.open", None),
        ("-00001.warc.gz", None),
    ],
)
def test_a_name_has_a_prefix_and_a_number(name: str, place: tuple[str, int] | None) -> None:
    assert parted(name) == place


def test_names_are_told_in_ranges() -> None:
    names = [*of(0, 1, 2, 5, 100_000), *of(7, prefix="b-1")]
    assert packed([*names, "other.warc.gz"]) == b'{"a":[[0,2],[5,5],[100000,100000]],"b-1":[[7,7]]}'
    assert unpacked(packed(names)) == set(names)


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"a":[[0,99999999]]}', b'{"a":[[1]]}', b"\xff"])
def test_what_is_no_range(raw: bytes) -> None:
    with pytest.raises(ValueError):
        unpacked(raw)
