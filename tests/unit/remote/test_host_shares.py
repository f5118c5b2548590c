"""Connections to a host that the runs of a pipeline divide: what one gets, another has closed."""

from __future__ import annotations

from muniment.remote.host_shares import HostShares

A, B = 1, 2
HOST = "a.example"


class Runs:
    """Two runs, and what each was told it may have."""

    def __init__(self) -> None:
        self.shares = HostShares()
        self.told: list[tuple[int, int]] = []
        for job in (A, B):
            self.shares.join(job, lambda host, permits, job=job: self.told.append((job, permits)))

    def grant(self, job: int, permits: int, *, limit: int = 9, alone: bool = False) -> int:
        return self.shares.grant(HOST, job, permits, limit, alone=alone)


def test_one_run_has_all() -> None:
    runs = Runs()
    assert runs.grant(A, 3) == 3
    assert runs.shares.keep(HOST, A, 1) == 3, "it can open the others again"
    runs.shares.lower({HOST: 2})
    assert runs.told == [(A, 2)]
    assert runs.shares.keep(HOST, A, 2) == 2
    assert runs.grant(A, 4) == 4


def test_who_comes_second_has_what_the_first_has_closed() -> None:
    runs = Runs()
    assert (runs.grant(A, 2), runs.grant(B, 2)) == (2, 0)
    assert runs.told == [(A, 1)]
    assert runs.shares.waits(HOST, B)
    assert runs.shares.keep(HOST, A, 1) == 2, "the other run has it now"
    assert runs.told == [(A, 1), (B, 1)]
    assert not runs.shares.waits(HOST, B)
    assert runs.shares.keep(HOST, B, 0) == 2
    assert runs.told == [(A, 1), (B, 1), (A, 2)]


def test_of_one_connection_the_second_waits_for_the_end_of_the_first() -> None:
    runs = Runs()
    assert (runs.grant(A, 1), runs.grant(B, 1)) == (1, 0)
    assert runs.told == []
    runs.shares.leave(A)
    assert runs.told == [(B, 1)]
    assert runs.shares.keep(HOST, B, 0) == 0


def test_the_lower_limit_holds_as_long_as_its_job_has_the_host() -> None:
    runs = Runs()
    assert runs.grant(A, 2, limit=2) == 2
    assert runs.grant(B, 4) == 0
    assert runs.told == [(A, 1)]
    runs.shares.keep(HOST, A, 1)
    assert runs.told[-1] == (B, 1)
    runs.shares.leave(A)
    assert runs.told[-1] == (B, 4)


def test_a_host_with_a_gap_has_one_run() -> None:
    runs = Runs()
    assert (runs.grant(A, 2), runs.grant(B, 2, alone=True)) == (2, 0)
    assert runs.told == []
    runs.shares.leave(A)
    assert runs.told == [(B, 2)]


def test_what_the_server_takes_back_is_taken_from_who_came_last() -> None:
    runs = Runs()
    runs.grant(A, 2)
    runs.grant(B, 2)
    runs.shares.keep(HOST, A, 1)
    runs.told.clear()
    runs.shares.lower({HOST: 1, "other.example": 0})
    assert runs.told == [(B, 0)]
    assert runs.shares.keep(HOST, B, 0) == 1
    runs.shares.lower({HOST: 0})
    assert runs.told == [(B, 0), (A, 0)]
