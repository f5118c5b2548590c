"""A round of the fault harness: one small crawl, struck as its script says, given again until it ends, and judged."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from footprint import Footprint, grown
from oracle import Evidence, complaints
from places import FORBIDDEN, Site, small_disk
from strikes import NETWORK, SILENCE_S, Script, Strike
from tests.support.nginx import Nginx
from tests.support.relay import Relay

TRIES = 8
MOST_S = 120.0
"""A round that takes longer has failed, however well it goes on. Time in which this machine stood still is no time."""
_STOOD_STILL_S = 0.5
MOST_RUNS = 60
MARK = "MUNIMENT_HARNESS_ROUND"
IMPATIENT = f"""
from functools import partial
from muniment.crawl.orchestrator import workers
from muniment.crawl.orchestrator import loop as orchestrator
orchestrator.Workers = partial(workers.Workers, silence_s={SILENCE_S})
from muniment.cli import main
main()
"""
"""The command line, with less patience for workers that say nothing."""
SHARED_MEMORY = Path("/dev/shm")
Log = Callable[..., None]
Launch = Callable[..., subprocess.Popen[Any]]


@dataclass
class Verdict:
    """How a round ended."""

    seed: int
    seconds: float = 0.0
    runs: int = 0
    struck: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    complaints: list[str] = field(default_factory=list)


class Round:
    """One round; `run` gives its verdict, and never raises for what the crawl does."""

    def __init__(
        self, script: Script, site: Site, work: Path, log: Log, *, keep: bool = False, launch: Launch = subprocess.Popen
    ) -> None:
        self.script, self._site, self._work, self._keeps, self._launch = script, site, work, keep, launch
        self.verdict = Verdict(script.seed)
        self.evidence: Evidence | None = None
        self._mark = uuid.uuid4().hex
        self._began = time.monotonic()
        self._passed_s = 0.0
        self._undo: list[Callable[[], None]] = []
        self._timers: list[threading.Timer] = []
        self._write = log
        self._struck_at: list[float] = []
        self._stopped = 0
        """Runs that a full disk stopped: one strike may last for several."""
        self._was_full = False
        """The disk was full in the latest run, for a while at least."""

    def run(self) -> Verdict:
        """Do it all."""
        before = set(SHARED_MEMORY.iterdir())
        with contextlib.ExitStack() as stack:
            self._disk = stack.enter_context(small_disk(self._work / "disk"))
            self._server = stack.enter_context(Nginx(self._site.root))
            self._relay = stack.enter_context(Relay(("127.0.0.1", self._server.ports[0])))
            stack.callback(self._calm_down)
            self._out, self._tmp = self._disk / "out", self._disk / "tmp"
            self._tmp.mkdir()
            self._log("begin", **asdict(self.script))
            try:
                self._work_through()
                self._judge()
            except TimeoutError as error:
                self._complain(f"{error}; {self._relay.state()}")
            self._end_all(before)
            self.verdict.seconds = time.monotonic() - self._began
            self.verdict.requests = self._relay.requests
            if self.verdict.complaints or self._keeps:
                self._keep()
        self._log("end", **asdict(self.verdict))
        return self.verdict

    # -- the crawl

    def _work_through(self) -> None:
        waiting = deque(self.script.strikes)
        for _ in range(MOST_RUNS):
            # a host that never answered is rightly given up, and one that did is waited for
            if not self._has_captured():
                self._relay.open_again()
            struck, code = self._one_run(waiting)
            if code == 0:
                self._tidy()
                return
            if not struck and not self._timers_left():
                self._complain(f"run {self.verdict.runs} ended with {code}, and nothing had been done to it")
            time.sleep(0.1)
        raise TimeoutError(f"the crawl was not over after {MOST_RUNS} runs")

    def _has_captured(self) -> bool:
        log = self._out / "crawl.jsonl"
        return log.exists() and b'"capture"' in log.read_bytes()

    def _tidy(self) -> None:
        """On a full disk SQLite leaves its log beside the tracker, with all in it: the same command puts it right."""
        if self._was_full:
            self._calm_down()
            self._one_run(deque())

    def _one_run(self, waiting: deque[Strike]) -> tuple[bool, int]:
        """Give the command once; whether it was struck, and its exit code."""
        self.verdict.runs += 1
        errors = self._work / f"run-{self.verdict.runs}.stderr"
        running, struck = self._timers_left(), 0
        self._was_full = (self._disk / "filler").exists()
        with errors.open("wb") as stderr:
            process = self._start(stderr)
            footprint = Footprint(process.pid)
            try:
                while waiting and self._reached(process, waiting):
                    self._strike(waiting.popleft(), process)
                    struck += 1
                self._relay.allow(None)
                self._wait(process)
            finally:
                self._finish_off(process)
                footprint.end()
        self._stopped += process.returncode == 3
        said = errors.read_text(errors="replace")
        self._log("run", number=self.verdict.runs, exit=process.returncode, struck=struck, stderr=said[-2000:])
        if "Traceback" in said or process.returncode not in (0, 1, 2, 3, -signal.SIGKILL):
            self._complain(f"run {self.verdict.runs} ended with {process.returncode} and said: {said[-1500:]}")
        for complaint in grown(footprint.samples, self._struck_at):
            self._complain(f"run {self.verdict.runs}: {complaint}")
        return bool(struck or running), process.returncode

    def _start(self, stderr: Any) -> subprocess.Popen[bytes]:
        first = self._relay.url
        if self.script.command == "fetch":
            first = str(self._work / "list.txt")
            Path(first).write_text("\n".join(self._relay.url.rstrip("/") + path for path in self._site.expected))
        command = [
            self.script.command,
            first,
            "-o",
            str(self._out),
            "--per-host",
            "8",
            "--tries",
            str(TRIES),
            "--quiet",
        ]
        return self._launch(
            [sys.executable, "-X", "faulthandler", "-c", IMPATIENT, *command, *self.script.options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={**os.environ, MARK: self._mark, "TMPDIR": str(self._tmp)},
            start_new_session=True,
        )

    def _reached(self, process: subprocess.Popen[bytes], waiting: deque[Strike]) -> bool:
        """Wait for the moment of the next strike; False when the run ended before."""
        strike = waiting[0]
        self._relay.allow(strike.after)
        while process.poll() is None:
            if self._relay.requests >= strike.after:
                self._relay.allow(waiting[1].after if len(waiting) > 1 else None)
                time.sleep(strike.delay_s)
                return True
            self._pass_time(0.002)
        return False

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            self._pass_time(0.005)

    def _pass_time(self, seconds: float) -> None:
        before = time.monotonic()
        time.sleep(seconds)
        # more than that, and all processes of this machine stood still
        self._passed_s += min(time.monotonic() - before, _STOOD_STILL_S)
        if self._passed_s > MOST_S:
            raise TimeoutError(f"the round took more than {MOST_S:.0f} s")

    def _finish_off(self, process: subprocess.Popen[bytes]) -> None:
        """End what is still there because the round is over, with what it was doing in its last words."""
        if process.poll() is None:
            self._calm_down()
            process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
        process.wait()

    # -- strikes

    def _strike(self, strike: Strike, process: subprocess.Popen[bytes]) -> None:
        at = self._relay.requests
        try:
            result = self._blow(strike, process)
        except (OSError, psutil.Error) as error:
            result = f"missed: {error}"
        self._struck_at.append(time.monotonic())
        self.verdict.struck[strike.kind] = self.verdict.struck.get(strike.kind, 0) + 1
        self._log("strike", **asdict(strike), requests=at, result=result)

    def _blow(self, strike: Strike, process: subprocess.Popen[bytes]) -> str:
        relay = self._relay
        match strike.kind:
            case "kill" | "freeze":
                return self._signal(strike, process)
            case "disk":
                return self._fill(strike)
            case "refuse":
                relay.refuse(strike.lasts_s)
            case "stall":
                relay.stall(strike.lasts_s)
            case "cut":
                relay.cut(strike.amount)
            case "reset":
                return f"{relay.reset()} connections"
            case "away":
                relay.away(strike.lasts_s)
            case "gateway":
                relay.answer(502, strike.lasts_s)
            case "throttle":
                headers = (("Retry-After", str(strike.amount)),) if strike.amount else ()
                relay.answer(429, strike.lasts_s, headers)
            case "robots":
                relay.answer_robots(503, strike.lasts_s)
        return "done"

    def _signal(self, strike: Strike, process: subprocess.Popen[bytes]) -> str:
        victims = self._victims(strike.who, process)
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.SIGKILL if strike.kind == "kill" else signal.SIGSTOP)
        if strike.kind == "freeze":
            self._later(strike.lasts_s, lambda: _thaw(victims))
        elif any(victim.pid == process.pid for victim in victims):
            process.wait()
        return f"pids {[victim.pid for victim in victims]}" if victims else "nobody there"

    def _victims(self, who: str, process: subprocess.Popen[bytes]) -> list[psutil.Process]:
        """The processes of a role; one that indexes is there for moments only, and is waited for."""
        me = psutil.Process(process.pid)
        if who == "orchestrator":
            return [me]
        end = time.monotonic() + (1.0 if who == "index" else 0.0)
        while True:
            children = me.children()
            if who == "all":
                return random.Random(self.script.seed).sample([me, *children], 1 + len(children))
            found = [child for child in children if who in child.cmdline()[3:4]][:1]
            if found or time.monotonic() >= end:
                return found
            time.sleep(0.005)

    def _fill(self, strike: Strike) -> str:
        filler = self._disk / "filler"
        self._was_full = True
        free = 0
        with filler.open("ab") as file:
            for _ in range(20):
                free = shutil.disk_usage(self._disk).free
                if free <= strike.amount:
                    break
                with contextlib.suppress(OSError):  # somebody else wrote in between
                    os.posix_fallocate(file.fileno(), filler.stat().st_size, free - strike.amount)
        self._later(strike.lasts_s, lambda: filler.unlink(missing_ok=True))
        return f"{free} bytes free"

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        """Undo a strike when its time is over, and once more when the round is, whatever happened between."""
        timer = threading.Timer(seconds, undo)
        timer.daemon = True
        self._undo.append(undo)
        self._timers.append(timer)
        timer.start()

    def _timers_left(self) -> bool:
        return any(timer.is_alive() for timer in self._timers)

    def _calm_down(self) -> None:
        """End every strike."""
        for timer in self._timers:
            timer.cancel()
        for undo in self._undo:
            undo()
        self._relay.mend()

    # -- the end

    def _judge(self) -> None:
        self._calm_down()
        self._server.wait_requests(self._relay.requests, 2.0)
        frozen = [strike for strike in self.script.of("freeze") if strike.lasts_s > SILENCE_S]
        self.evidence = Evidence(
            self._out,
            self._site.expected,
            Counter(urlsplit(request.uri).path for request in self._server.requests()) + self._relay.answered,
            TRIES,
            losses=len(self.script.of("kill")) + max(len(self.script.of("disk")), self._stopped) + len(frozen),
            cuts=len(self.script.of(*NETWORK)),
            temporary=self._tmp,
            forbidden=FORBIDDEN,
        )
        for complaint in complaints(self.evidence):
            self._complain(complaint)

    def _end_all(self, shared_before: set[Path]) -> None:
        """No process, no shared memory is left."""
        if left := self._processes(5.0):
            self._complain(f"processes are left: {left}")
            for pid in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    psutil.Process(pid).kill()
        if shared := [path for path in set(SHARED_MEMORY.iterdir()) - shared_before if "muniment" in path.name]:
            self._complain(f"shared memory is left: {shared}")

    def _processes(self, seconds: float) -> dict[int, str]:
        end = time.monotonic() + seconds
        while True:
            left = {}
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error, OSError):
                    if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                        left[process.pid] = " ".join(process.cmdline()[-3:])
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)

    def _keep(self) -> None:
        """Put the directory of a failed round where it survives the round's disk."""
        with contextlib.suppress(OSError, shutil.Error):
            shutil.copytree(self._out, self._work / "kept")

    def _complain(self, text: str) -> None:
        self.verdict.complaints.append(text)
        self._log("complaint", text=text)

    def _log(self, event: str, **fields: Any) -> None:
        self._write(event, round=self.script.seed, s=round(time.monotonic() - self._began, 3), **fields)


def _thaw(victims: list[psutil.Process]) -> None:
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGCONT)
