"""Answers that took long are given again for a while."""

import time

from muniment.control.runs.answer_cache import AnswerCache


def test_an_answer_is_given_again_for_as_long_as_it_took_and_more() -> None:
    kept, asked = AnswerCache(), list[str]()

    def slow() -> int:
        asked.append("slow")
        time.sleep(0.05)
        return len(asked)

    assert [kept.of(("pages", 1), slow) for _ in range(3)] == [1, 1, 1]
    assert kept.of(("pages", 2), slow) == 2
    kept.forget()
    assert kept.of(("pages", 1), slow) == 3


def test_an_answer_that_took_no_time_is_asked_for_anew() -> None:
    kept, numbers = AnswerCache(), iter(range(10))
    first = kept.of("pages", lambda: next(numbers))
    time.sleep(0.01)
    assert (first, kept.of("pages", lambda: next(numbers))) == (0, 1)
