"""A file that is checked in ranges, over all processes, says what it says in one piece."""

import base64
import gzip
import hashlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.archive.check.chain import Chain
from muniment.archive.check.directory import check
from muniment.archive.check.range_checker import FileRange, RangeChecker

INFO = "<urn:x:info>"
DATES = ("2026-11-18T11:06:40Z", "2026-11-18T11:06:41Z")
HTTP = b"HTTP/1.1 200 OK\r\n\r\n"


def record(kind, name, block, date=DATES[0], *more):
    digest = base64.b32encode(hashlib.sha1(block).digest()).decode()
    target = "" if kind == "warcinfo" else "WARC-Target-URI: http://a.example/\r\n"
    coding = "application/warc-fields" if kind == "warcinfo" else f"application/http; msgtype={kind}"
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {name}\r\nWARC-Date: {date}\r\n{target}"
        f"{''.join(f'{line}{chr(13)}{chr(10)}' for line in more)}WARC-Block-Digest: sha1:{digest}\r\n"
        f"Content-Type: {coding}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def noise(seed, length):
    return random.Random(seed).randbytes(length)


def response(name, body, date=DATES[0]):
    return record("response", f"<urn:x:{name}>", HTTP + body, date)


def request(name, of, date=DATES[0], info="info"):
    links = f"WARC-Concurrent-To: <urn:x:{of}>", f"WARC-Warcinfo-ID: <urn:x:{info}>"
    return record("request", f"<urn:x:{name}>", b"GET / HTTP/1.1\r\n\r\n", date, *links)


FIRST = gzip.compress(record("warcinfo", INFO, b"software: other/1.0\r\n"))
NAMES = st.integers(0, 12)
SOUND = st.one_of(
    st.builds(lambda name, length: response(name, noise(name, length)), NAMES, st.integers(0, 3000)),
    st.builds(
        lambda name, of, date, info: request(20 + name, of, date, info),
        NAMES,
        NAMES,
        st.sampled_from(DATES),
        st.sampled_from(("info", "nobody")),
    ),
)
DEFLATED = st.builds(gzip.compress, SOUND)
DAMAGED = st.builds(
    lambda member, at: member[: at % len(member)] + b"\0\0\0" + member[at % len(member) + 3 :],
    DEFLATED,
    st.integers(1, 2000),
)
SPOILT = st.builds(lambda plain: gzip.compress(plain.replace(b"GET", b"PUT").replace(b"200", b"103")), SOUND)
HOLDING = st.builds(
    lambda inner, name: gzip.compress(response(f"in{name}", b"".join(inner)), 0),
    st.lists(st.one_of(DEFLATED, DAMAGED), min_size=1, max_size=8),
    NAMES,
)
"""A record that is stored and holds a WARC: at each of its members another one seems to begin."""
MEMBERS = st.lists(st.one_of(DEFLATED, DEFLATED, HOLDING, DAMAGED, SPOILT, st.just(b"junk")), max_size=14)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(members=MEMBERS, size=st.integers(1, 4000), cut=st.integers(0, 30))
def test_ranges_of_any_size_say_the_same(tmp_path, check_in_ranges, members, size, cut):
    data = FIRST + b"".join(members)
    (tmp_path / "other.warc.gz").write_bytes(data[: len(data) - cut])
    whole = check(tmp_path)
    assert check_in_ranges(tmp_path, 1) == whole
    assert check_in_ranges(tmp_path, size) == whole


@FEW
@given(members=MEMBERS, size=st.integers(1, 2000), order=st.randoms(use_true_random=False))
def test_ranges_that_get_ready_in_any_order_are_taken_in_that_of_the_file(tmp_path, members, size, order):
    path = tmp_path / "other.warc.gz"
    path.write_bytes(FIRST + b"".join(members))
    length = path.stat().st_size
    whole = FileRange(0, path.name, str(path), 0, length, length, False)
    chain = Chain(whole, size)
    new, begun, taken, read = chain.ranges(), [], [], 0
    while not chain.done:
        if chain.again:
            begun.append(chain.again)
            chain.again = None
        elif (file_range := next(new, None)) is not None:
            begun.append(file_range)
        if file_range is None or len(begun) > 5 or order.random() < 0.4:
            one = begun.pop(order.randrange(len(begun)))
            result = RangeChecker(one).run()
            read += result.end - one.start
            taken += chain.take(one, result)
    assert [start for start, _ in taken] == [0, *(found.end for _, found in taken[:-1])]
    serial = RangeChecker(whole).run()
    assert taken[-1][1].end == serial.end
    assert [one for _, found in taken for one in found.found] == serial.found
    assert sum(found.records for _, found in taken) == serial.records


def many_members(tmp_path, inner):
    members = [FIRST, *(gzip.compress(response(n, noise(n, 9000)), 1) for n in range(40))]
    members.insert(10, gzip.compress(response("in", inner), 0))
    (tmp_path / "other.warc.gz").write_bytes(b"".join(members))


@pytest.mark.parametrize("processes", [1, 3])
def test_a_stretch_does_not_begin_within_a_record(tmp_path, monkeypatch, processes):
    """Whole ranges lie within one member, and read well: none of what they say counts."""
    inner = b"".join(gzip.compress(response(n % 7, b"no", DATES[1]).replace(b"200", b"103"), 0) for n in range(600))
    many_members(tmp_path, inner)
    monkeypatch.setattr("muniment.archive.check.directory._SMALLEST", 20_000)
    monkeypatch.setattr("muniment.archive.check.directory._LARGEST", 20_000)
    result = check(tmp_path, processes)
    assert (result.faults, result.records) == ((), 42)


def test_no_byte_is_read_more_than_twice(tmp_path):
    """A file of members that hold others would otherwise cost what its sender likes."""
    inner = b"".join(gzip.compress(response(n, b"x"), 0) for n in range(200))
    many_members(tmp_path, inner)
    path = tmp_path / "other.warc.gz"
    length = path.stat().st_size
    chain = Chain(FileRange(0, path.name, str(path), 0, length, length, False), 100)
    begun, read = list(chain.ranges()), 0
    assert len(begun) > 100
    while begun:
        one = begun.pop()
        result = RangeChecker(one).run()
        read += one.end - one.start
        list(chain.take(one, result))
        if chain.again:
            begun.append(chain.again)
            chain.again = None
    assert chain.done
    assert read <= 2 * length


def test_of_many_faults_the_same_are_listed(tmp_path, check_in_ranges):
    spoilt = gzip.compress(request("a", "b").replace(b"WARC-Date", b"Date"), 1)
    (tmp_path / "other.warc.gz").write_bytes(FIRST + spoilt * 1300)
    whole = check(tmp_path)
    assert len(whole.faults) == 1001
    assert [fault.code for fault in whole.faults if fault.offset < 0] == ["more"]
    assert check_in_ranges(tmp_path, 7000) == whole


def test_what_names_a_record_before_a_seam(tmp_path, check_every_way):
    """The request has another date than its response, and is the first record of its range."""
    members = (response("a", b"x"), request("b", "a", DATES[1]), request("c", "a"), request("d", "gone", info="gone"))
    (tmp_path / "other.warc.gz").write_bytes(FIRST + b"".join(map(gzip.compress, members)))
    found = check_every_way(tmp_path).faults
    assert [fault.code for fault in found] == ["field", "link", "link"]
    assert found[0].offset == len(FIRST) + len(gzip.compress(members[0]))


def test_a_file_that_cannot_be_read_to_its_end(tmp_path, check_in_ranges, monkeypatch):
    """Nothing behind the first error is judged, whichever range met it."""
    import os

    many_members(tmp_path, b"nothing")
    path = tmp_path / "other.warc.gz"
    bad = path.stat().st_size // 2
    real = os.pread

    def pread(fd, size, at):
        if at + size <= bad:
            return real(fd, size, at)
        if at < bad:
            return real(fd, bad - at, at)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("muniment.archive.warc.inflate.os.pread", pread)
    whole = check(tmp_path)
    assert [fault.text for fault in whole.faults] == ["cannot be read: Input/output error; the rest was not checked"]
    assert check_in_ranges(tmp_path, 30_000) == whole
