"""Schedule: hosts take turns, and their connections are divided so that no host ever has more than `--per-host`."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muniment.crawl.orchestrator.schedule import Schedule
from muniment.model.host import HostTerms


def scheduled(per_host=6, workers=1, *, gap_ms=0, **pending):
    """A schedule with workers 0, 1, … and hosts of the given names, numbered from 1."""
    made = Schedule(per_host, gap_ms=gap_ms)
    for worker in range(workers):
        made.add_worker(worker)
    for number, (name, pages) in enumerate(pending.items(), 1):
        made.add_pending(number, name, pages)
    return made


def take(schedule, worker, most=100, now=0):
    """What a worker is given: host number → (pages, permits)."""
    picked = schedule.pick(worker, most, now)
    for host, pages in picked:
        schedule.claimed(worker, host, pages, pages, now)
    return {host: (pages, schedule.terms(worker, host, now, {}).permits) for host, pages in picked}


def test_one_worker_has_all_connections_and_five_pages_for_each():
    assert take(scheduled(6, a=100), 0) == {1: (30, 6)}


def test_connections_are_divided_evenly_among_workers():
    schedule = scheduled(7, workers=3, a=1000)
    assert [take(schedule, worker)[1][1] for worker in range(3)] == [3, 2, 2]


def test_a_host_with_few_pages_gives_what_it_has():
    assert take(scheduled(6, a=2), 0) == {1: (2, 6)}


def test_no_more_than_asked():
    assert take(scheduled(6, a=100, b=100), 0, most=3) == {1: (3, 6)}


def test_hosts_with_pages_that_wait_are_counted():
    schedule = scheduled(2, a=11, b=3)
    schedule.add_pending(3, "c", 0)
    assert (schedule.pending, schedule.hosts) == (14, 2)
    assert take(schedule, 0) == {1: (10, 2), 2: (3, 2)}
    assert (schedule.pending, schedule.hosts) == (1, 1)
    schedule.add_pending(1, "a", -1)
    schedule.add_pending(2, "b", 1)
    assert (schedule.pending, schedule.hosts) == (1, 1)


def test_hosts_take_turns():
    schedule = scheduled(2, a=100, b=100, c=100)
    given = Counter()
    for _ in range(9):
        for host, (pages, _) in take(schedule, 0, most=1).items():
            given[host] += pages
    assert given == {1: 3, 2: 3, 3: 3}


def test_a_crowded_host_does_not_keep_the_others_waiting():
    schedule = scheduled(1, a=10_000, b=1)
    assert take(schedule, 0) == {1: (5, 1), 2: (1, 1)}


def test_every_one_of_many_hosts_gets_its_turn():
    schedule = scheduled(6, **{f"h{n}": 1 for n in range(2_000)})
    seen = set()
    while given := take(schedule, 0, most=100):
        seen |= set(given)
    assert len(seen) == 2_000
    assert schedule.pending == 0


def test_with_a_delay_a_host_has_one_owner():
    schedule = scheduled(6, workers=2, gap_ms=10, a=100)
    assert take(schedule, 1) == {1: (30, 6)}
    assert take(schedule, 0) == {}


def test_an_owner_that_gave_all_back_makes_room_for_another():
    schedule = scheduled(6, workers=2, gap_ms=10, a=31)
    take(schedule, 1)
    for _ in range(30):
        schedule.landed(1, 1)
    schedule.permits_held(1, "a", 0)
    assert take(schedule, 0) == {1: (1, 6)}


def test_an_owner_that_died_makes_room_for_another():
    schedule = scheduled(6, workers=2, gap_ms=10, a=100)
    take(schedule, 1)
    schedule.remove_worker(1, 0)
    assert take(schedule, 0, now=9) == {}, "it may have asked just before it died"
    assert take(schedule, 0, now=10)[1][1] == 6


def test_with_a_long_gap_no_pages_wait_in_a_workers_hands():
    assert take(scheduled(6, gap_ms=1_500, a=100), 0) == {1: (2, 6)}


def test_a_gap_that_comes_later_makes_one_worker_the_owner():
    schedule = scheduled(6, workers=2, a=100)
    take(schedule, 0)
    take(schedule, 1)
    assert schedule.set_gap(1, 10) == {1: [1]}
    assert schedule.terms(0, 1, 0, {}) == HostTerms("a", 3, 10)
    assert schedule.terms(1, 1, 0, {}) == HostTerms("a", 1, 10, 10), "the pages in its hands go back: it asks nothing"


def test_a_held_host_gives_nothing_and_names_whom_to_tell():
    schedule = scheduled(6, workers=3, a=100, b=1)
    take(schedule, 0, most=1)
    schedule.hold(1, 500)
    assert schedule.told_of(1) == (0,)
    assert [schedule.terms(0, 1, now, {}).wait_ms for now in (0, 400, 600)] == [500, 100, 0]
    assert take(schedule, 1, now=499) == {2: (1, 2)}
    assert 1 in take(schedule, 1, now=500)


def test_a_host_with_fewer_permits_belongs_to_one_worker_and_gets_them_back():
    schedule = scheduled(6, workers=2, a=100)
    assert schedule.set_most(1, 1) == {}
    assert take(schedule, 0) == {1: (5, 1)}
    assert take(schedule, 1) == {}
    schedule.set_most(1, 6)
    assert take(schedule, 1) == {1: (15, 3)}


def test_fewer_connections_than_workers_go_to_one():
    schedule = scheduled(2, workers=3, a=100)
    assert take(schedule, 2) == {1: (10, 2)}
    assert [take(schedule, 0), take(schedule, 1)] == [{}, {}]


def test_a_new_worker_gets_its_share_when_the_others_gave_it_back():
    schedule = scheduled(6, a=1000)
    take(schedule, 0)
    assert schedule.add_worker(1) == {0: [1]}
    assert schedule.terms(0, 1, 0, {}).permits == 3
    assert take(schedule, 1) == {}
    schedule.permits_held(0, "a", 3)
    assert take(schedule, 1) == {1: (15, 3)}


def test_connections_of_a_dead_worker_are_free():
    schedule = scheduled(6, workers=2, a=1000)
    take(schedule, 0)
    schedule.remove_worker(0, 0)
    assert take(schedule, 1)[1][1] == 6


def test_a_retry_waits():
    schedule = scheduled()
    schedule.add_pending(1, "a", 1, due_at=5_000)
    assert take(schedule, 0, now=4_999) == {}
    assert take(schedule, 0, now=5_000) == {1: (1, 6)}


def test_a_later_retry_does_not_put_off_an_earlier_page():
    schedule = scheduled(a=1)
    schedule.add_pending(1, "a", 1, due_at=5_000)
    assert 1 in take(schedule, 0, now=0)


def test_a_page_that_is_ready_does_not_wait_for_a_retry():
    schedule = scheduled()
    schedule.add_pending(1, "a", 1, due_at=5_000)
    schedule.add_pending(1, "a", 1)
    assert 1 in take(schedule, 0, now=0)


def test_a_host_that_gave_less_than_asked_is_looked_at_again_soon():
    schedule = scheduled(a=10)
    assert schedule.pick(0, 10, 0) == [(1, 10)]
    schedule.claimed(0, 1, 4, 10, 0)
    assert schedule.pick(0, 10, 100) == []
    assert schedule.pick(0, 10, 250) == [(1, 6)]


def test_pages_are_counted():
    schedule = scheduled(a=10, b=5)
    assert schedule.pending == 15
    take(schedule, 0)
    assert schedule.pending == 0


def test_a_worker_with_pages_in_hand_keeps_a_connection():
    """Its pages would wait for ever: nothing gives them back, and no connections at all are not believed of it."""
    schedule = scheduled(2, workers=2, a=1000)
    take(schedule, 0)
    take(schedule, 1)
    schedule.add_worker(2)
    assert [schedule.terms(worker, 1, 0, {}).permits for worker in range(3)] == [1, 1, 0]


def test_a_claim_before_the_answer_does_not_free_connections():
    """Worker 0 has six open and was told to keep three; its next claim comes before it closed any."""
    schedule = scheduled(6, a=1000)
    take(schedule, 0)
    schedule.add_worker(1)
    for _ in range(20):
        schedule.landed(0, 1)
    take(schedule, 0)
    assert take(schedule, 1) == {}


def test_an_answer_that_crossed_a_larger_grant_does_not_free_connections():
    """Told to keep three, worker 0 says so; meanwhile worker 1 died and worker 0 was granted six again."""
    schedule = scheduled(6, a=1000)
    take(schedule, 0)
    schedule.add_worker(1)
    schedule.remove_worker(1, 0)
    for _ in range(20):
        schedule.landed(0, 1)
    assert take(schedule, 0)[1][1] == 6
    schedule.permits_held(0, "a", 3)
    schedule.add_worker(2)
    assert take(schedule, 2) == {}


MANY = 101
"""Pages in a worker's hands that let hosts which failed wait."""


def with_failed(*numbers, **pending):
    """The same with one worker, and hosts that failed and are due again, though others go first for ten seconds."""
    made = scheduled(8, **pending)
    for number in numbers:
        made.add_pending(number, str(number), 0)
        made.hold(number, 0, later_until=10_000)
        made.add_pending(number, str(number), 4)
    return made


def test_hosts_that_failed_come_after_the_others_in_the_order_of_their_failures():
    schedule = with_failed(8, 6, 7, a=4)
    schedule.add_pending(2, "b", 4)
    assert schedule.pick(0, 60, 1) == [(1, 4), (2, 4), (8, 4), (6, 4), (7, 4)]


def test_while_a_worker_has_pages_a_host_that_failed_waits_for_ten_seconds_at_the_most():
    schedule = with_failed(9, a=4)
    assert schedule.pick(0, 60, 1, MANY) == [(1, 4)]
    assert schedule.pick(0, 60, 9_999, MANY) == []
    assert schedule.pick(0, 60, 10_000, MANY) == [(9, 4)]
    assert schedule.pick(0, 60, 10_000) == []


def test_when_a_worker_has_few_pages_a_host_that_failed_goes():
    schedule = with_failed(9)
    assert schedule.pick(0, 60, 1, MANY) == []
    assert schedule.pick(0, 60, 1, MANY - 1) == [(9, 4)]


def test_a_host_that_answers_takes_turns_again():
    schedule = with_failed(9)
    schedule.rejoin(9)
    assert schedule.pick(0, 60, 1, MANY) == [(9, 4)]


def test_a_host_that_failed_in_another_way_then_takes_turns_again():
    schedule = with_failed(9)
    schedule.hold(9, 0)
    assert schedule.pick(0, 60, 1, MANY) == [(9, 4)]


class Worker:
    """What a worker process does with permits, and the messages on their way to and from it."""

    def __init__(self):
        self.inbox, self.outbox = deque(), deque()
        self.limit, self.open, self.pages, self.changed = Counter(), Counter(), Counter(), set()

    def read(self):
        kind, host, permits, pages = self.inbox.popleft()
        if kind == "update":
            if not (self.limit[host] or self.pages[host]):
                return
            if permits != self.limit[host]:
                self.changed.add(host)
        self.limit[host] = permits
        self.pages[host] += pages

    def read_all(self):
        while self.inbox:
            self.read()
            for host in HOSTS:
                self.connect(host)

    def connect(self, host):
        self.open[host] = max(self.open[host], min(self.limit[host], self.pages[host]))

    def land(self, host):
        if self.open[host] and self.limit[host] and self.pages[host]:
            self.pages[host] -= 1
            self.outbox.append(("landed", host, 0))

    def close(self, host):
        """Close what is over the limit, or everything when there is nothing to do; tell it as `crawl.worker` does."""
        self.open[host] = min(self.open[host], self.limit[host])
        if host in self.changed:
            self.changed.discard(host)
            self.outbox.append(("held", host, self.limit[host]))
        if not self.pages[host] and self.limit[host]:
            self.open[host] = self.limit[host] = 0
            self.outbox.append(("held", host, 0))


HOSTS = ("a", "b")


class Crawl(RuleBasedStateMachine):
    """Any order of claims, landings, closings, arrivals and deaths, with every message delayed at will."""

    def __init__(self):
        super().__init__()
        self.workers: dict[int, Worker] = {}
        self.numbers = 0
        self.now = 0

    @initialize(per_host=st.integers(1, 7), gap_ms=st.sampled_from([0, 100]), workers=st.integers(0, 3))
    def begin(self, per_host, gap_ms, workers):
        """Some workers are at work already."""
        self.per_host = per_host
        self.schedule = Schedule(per_host, gap_ms=gap_ms)
        self.schedule.add_pending(0, "a", 100)
        for _ in range(workers):
            self.arrives()
        for number in range(workers):
            self.serve(number, 60)
        for worker in self.workers.values():
            worker.read_all()

    @rule(host=st.sampled_from(HOSTS), pages=st.sampled_from([1, 8, 100]), wait=st.sampled_from([0, 0, 1_000]))
    def found(self, host, pages, wait):
        self.schedule.add_pending(HOSTS.index(host), host, pages, self.now + wait if wait else 0)

    @rule(host=st.sampled_from(HOSTS), share=st.integers(0, 3))
    def troubled(self, host, share):
        if self.schedule.known(host) is None:
            return
        self.send(self.schedule.set_most(HOSTS.index(host), max(1, self.per_host >> share)))

    @rule(host=st.sampled_from(HOSTS), wait=st.sampled_from([0, 500]), later=st.sampled_from([0, 1_500]))
    def fails(self, host, wait, later):
        if self.schedule.known(host) is not None:
            until = self.now + wait
            self.schedule.hold(HOSTS.index(host), until, later_until=until + later if later else 0)

    @rule(host=st.sampled_from(HOSTS))
    def answers(self, host):
        if self.schedule.known(host) is not None:
            self.schedule.rejoin(HOSTS.index(host))

    @precondition(lambda self: len(self.workers) < 4)
    @rule()
    def arrives(self):
        self.send(self.schedule.add_worker(self.numbers))
        self.workers[self.numbers] = Worker()
        self.numbers += 1

    def send(self, lowered):
        for number, host_ids in lowered.items():
            for host_id in host_ids:
                terms = self.schedule.terms(number, host_id, self.now, {})
                self.workers[number].inbox.append(("update", terms.host, terms.permits, 0))

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), host=st.sampled_from(HOSTS))
    def has_news(self, data, host):
        """Of anything but permits; the one that is answered may have nothing of the host in hand."""
        if self.schedule.known(host) is not None:
            host_id = HOSTS.index(host)
            self.send({number: [host_id] for number in {self.one(data), *self.schedule.told_of(host_id)}})

    def one(self, data):
        return data.draw(st.sampled_from(sorted(self.workers)))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def dies(self, data):
        number = self.one(data)
        worker = self.workers.pop(number)
        back = Counter(worker.pages)
        for _, host, _, pages in worker.inbox:
            back[host] += pages
        for kind, host, _ in worker.outbox:
            back[host] += kind == "landed"
        for host, pages in back.items():
            for _ in range(pages):
                self.schedule.landed(number, HOSTS.index(host))
            if pages:
                self.schedule.add_pending(HOSTS.index(host), host, pages)
        self.schedule.remove_worker(number, 0)

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), most=st.sampled_from([60, 5, 1]), in_hand=st.sampled_from([0, MANY]))
    def claims(self, data, most, in_hand):
        self.serve(self.one(data), most, in_hand)

    def serve(self, number, most, in_hand=0):
        picked = self.schedule.pick(number, most, self.now, in_hand)
        assert len({host_id for host_id, _ in picked}) == len(picked), "a page may be claimed once"
        for host_id, pages in picked:
            assert pages > 0
            self.schedule.claimed(number, host_id, pages, pages, self.now)
            terms = self.schedule.terms(number, host_id, self.now, {})
            assert terms.permits > 0
            assert terms.wait_ms == 0, "its pages would go back at once"
            self.workers[number].inbox.append(("pages", terms.host, terms.permits, pages))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def reads(self, data):
        self.workers[self.one(data)].read_all()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), host=st.sampled_from(HOSTS), pages=st.integers(1, 30))
    def lands(self, data, host, pages):
        worker = self.workers[self.one(data)]
        for _ in range(pages):
            worker.land(host)

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def closes(self, data):
        worker = self.workers[self.one(data)]
        for host in HOSTS:
            worker.close(host)

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def is_heard(self, data):
        number = self.one(data)
        while self.workers[number].outbox:
            self.deed(number, self.workers[number], "", "say")

    def deed(self, number, worker, host, deed):
        if deed == "read" and worker.inbox:
            worker.read()
        elif deed == "say" and worker.outbox:
            kind, name, permits = worker.outbox.popleft()
            if kind == "landed":
                self.schedule.landed(number, HOSTS.index(name))
            else:
                self.schedule.permits_held(number, name, permits)
        elif deed in {"connect", "land", "close"}:
            getattr(worker, deed)(host)

    @rule(ms=st.integers(1, 2_000))
    def time_goes_by(self, ms):
        self.now += ms

    @invariant()
    def no_host_has_more_connections_than_it_may(self):
        in_all = defaultdict(int)
        for worker in self.workers.values():
            for host, count in worker.open.items():
                in_all[host] += count
        assert all(count <= getattr(self, "per_host", 0) for count in in_all.values()), dict(in_all)

    def teardown(self):
        """Left to themselves, the workers come to the end of all pages."""
        if not hasattr(self, "per_host") or not self.workers:
            return
        for _ in range(600):
            self.now += 1_000
            for number, worker in self.workers.items():
                self.serve(number, 60)
                for deed in ("read", "connect", "land", "close", "say"):
                    for host in HOSTS:
                        for _ in range(9):
                            self.deed(number, worker, host, deed)
            left = sum(sum(worker.pages.values()) + len(worker.inbox) for worker in self.workers.values())
            if not left and not self.schedule.pending:
                return
        raise AssertionError("pages are left that nobody fetches")


# without shrinking, which takes minutes here: what it finds gets a small test above
Crawl.TestCase.settings = settings(
    deadline=None, max_examples=250, stateful_step_count=30, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
TestAnyOrder = Crawl.TestCase


def test_a_lowered_limit_is_told_and_no_more_is_given_until_connections_are_closed():
    schedule = scheduled(6, workers=2, a=1000)
    take(schedule, 0), take(schedule, 1)
    assert schedule.set_pace(2, gap_ms=0) == {0: [1], 1: [1]}
    assert [schedule.terms(worker, 1, 0, {}).permits for worker in range(2)] == [1, 1]
    for worker in (0, 1):
        for _ in range(15):
            schedule.landed(worker, 1)
    assert take(schedule, 0) == {}
    schedule.permits_held(1, "a", 1)
    assert take(schedule, 0) == {1: (5, 1)}


def test_a_raised_limit_goes_out_with_the_next_pages():
    schedule = scheduled(1, a=1000)
    take(schedule, 0)
    assert schedule.set_pace(4, gap_ms=0) == {}
    assert take(schedule, 0) == {1: (15, 4)}


def test_with_a_delay_from_now_on_a_host_belongs_to_one_worker():
    schedule = scheduled(6, workers=2, a=1000)
    take(schedule, 0), take(schedule, 1)
    assert schedule.set_pace(6, gap_ms=10) == {1: [1]}
    for _ in range(15):
        schedule.landed(1, 1)
    assert take(schedule, 1) == {}
    schedule.permits_held(1, "a", 0)
    assert take(schedule, 0) == {1: (15, 6)}


def test_pages_that_wait_no_more_are_taken_back():
    schedule = scheduled(6, a=3, b=1)
    schedule.add_pending(1, "a", -3)
    assert schedule.pending == 1
    assert take(schedule, 0) == {2: (1, 6)}


def looks(schedule, worker, now=0):
    """How many hosts a pick looks at."""
    seen = []
    room = schedule._room
    schedule._room = lambda plan, *rest: seen.append(plan.host_id) or room(plan, *rest)
    schedule.pick(worker, 5, now)
    schedule._room = room
    return len(seen)


def test_hosts_that_wait_are_full_or_have_ended_are_looked_at_once():
    schedule = scheduled(1, workers=2, **{f"h{n}": 6 for n in range(3_000)})
    for host in range(1, 1_001):
        schedule.hold(host, 60_000)
    for host in range(1_001, 2_001):
        schedule.claimed(1, host, 5, 5, 0)
    for host in range(2_001, 3_000):
        schedule.add_pending(host, f"h{host - 1}", -6)
    assert take(schedule, 0) == {3_000: (5, 1)}
    assert [looks(schedule, 0), looks(schedule, 0, now=59_999)] == [0, 0]
    assert looks(schedule, 0, now=60_000) == 1
    assert len(take(schedule, 0, most=10_000, now=60_000)) == 1_000 - 1, "but for the one that was just picked"


def test_without_spreading_the_host_found_first_gives_first():
    schedule = Schedule(2, spread=False)
    schedule.add_worker(0)
    for number, name in enumerate("abc", 1):
        schedule.add_pending(number, name, 100)
    order = []
    for _ in range(12):
        order += [host for host, pages in take(schedule, 0, most=2).items() for _ in range(pages[0])]
    assert order == [1] * 10 + [2] * 10 + [3] * 4


def test_a_host_that_waits_again_and_again_has_few_alarms():
    schedule = scheduled(a=9)
    for now in range(0, 100_000, 10):
        schedule.hold(1, now + 5_000)
        schedule.pick(0, 1, now)
    assert len(schedule._alarms) <= 2
    assert 1 in take(schedule, 0, now=200_000)
