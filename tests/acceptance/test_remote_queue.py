"""Crawls whose queue is far away: calls are slow, arrive twice, or are cut off, and nothing comes out otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]

AGAIN = {
    "redirects, cookies and scope": {
        "acceptance/test_redirects.py": [
            "test_endless_redirects_end_at_the_limit",
            "test_a_page_that_redirects_to_itself_with_a_cookie_is_fetched_again",
            "test_a_redirect_to_itself_without_a_new_cookie_ends_there",
            "test_a_cookie_that_turns_for_ever_ends_at_the_limit",
            "test_a_login_sends_back_to_the_page",
            "test_a_wall_before_many_pages_is_passed_by_all_workers",
            "test_the_start_url_redirects_to_www",
            "test_an_offsite_page_that_redirects_is_followed_to_its_end_and_no_further",
            "test_cookies_come_from_a_file_outlive_a_stop_and_go_out_to_a_file",
        ],
        "acceptance/test_scope.py": [
            "test_rows_say_how_a_page_was_found",
            "test_ignore_holds_for_links_requisites_and_redirect_targets",
            "test_pages_taken_as_offsite_are_followed_once_their_host_joins_the_site",
            "test_a_shorter_path_found_later_opens_what_lies_behind",
        ],
        "acceptance/test_damaged.py": ["test_damage_in_a_full_file_is_mended_by_the_same_run"],
    },
    "politeness": {
        "acceptance/test_politeness.py": [
            "test_nothing_is_asked_before_retry_after_has_passed",
            "test_retry_after_may_be_a_date_and_robots_txt_may_say_it",
            "test_a_wait_is_kept_over_a_resume",
            "test_requests_are_a_delay_apart_and_a_resume_does_not_hurry",
            "test_crawl_delay_is_kept",
            "test_a_challenge_pauses_the_host_at_once",
            "test_a_dead_host_is_given_up_after_proof",
        ]
    },
    "changes and lists": {
        "acceptance/test_changes.py": [
            "test_patterns_are_added_and_removed_while_the_crawl_runs",
            "test_the_delay_is_changed_while_every_page_waits_for_its_turn",
            "test_the_number_of_tries_is_changed_for_pages_that_wait",
            "test_a_whole_set_is_added_and_removed_while_the_crawl_runs",
            "test_a_change_is_not_lost_by_a_kill",
            "test_a_crawl_that_patterns_emptied_goes_on_when_they_are_taken_out",
        ],
        "acceptance/test_listed_again.py": [
            "test_each_line_has_its_own",
            "test_over_several_runs_each_has_one",
            "test_a_run_that_is_killed_has_told_it",
        ],
        "acceptance/test_fetch.py": [
            "test_redirects_are_captures_of_their_line",
            "test_duplicates_and_bad_lines_are_counted_and_told",
            "test_failed_lines_are_tried_again_in_the_same_directory",
        ],
    },
    "ends and resumes": {
        "acceptance/test_ending.py": [
            "test_a_signal_ends_a_crawl_cleanly_and_the_same_command_resumes",
            "test_a_second_ctrl_c_ends_at_once_and_the_same_command_resumes",
            "test_a_kill_before_the_first_page_loses_no_robots_txt",
            "test_max_pages_is_exact_stays_and_can_be_raised",
            "test_nothing_captured_is_exit_4",
            "test_a_finished_crawl_asks_for_nothing_and_refuses_to_become_another",
        ],
        "acceptance/test_next_run.py": ["test_without_robots_what_it_had_kept_out_is_taken"],
        "acceptance/test_retries.py": ["test_tries_are_rows_and_the_last_one_decides"],
    },
    "kills": {
        "faults/test_kill_at_the_end.py": ["test_a_run_that_ends_before_its_index_is_joined_is_not_over"],
        "faults/test_kill_while_waiting.py": ["test_what_is_killed_while_it_waits_goes_on_waiting"],
        "faults/test_kill.py": ["test_kills_lose_nothing_and_repeat_little"],
    },
}


def test_about_forty_are_run() -> None:
    assert 40 <= sum(len(names) for files in AGAIN.values() for names in files.values()) <= 50


@pytest.mark.parametrize("tests", AGAIN)
def test_what_holds_with_a_tracker_at_hand_holds_with_a_far_one(tests: str, tmp_path: Path) -> None:
    paths = [f"tests/{path}::{name}" for path, names in AGAIN[tests].items() for name in names]
    options = ["-p", "no:cacheprovider", "--basetemp", f"{tmp_path}/t"]
    command = [sys.executable, "-m", "pytest", *options, *paths]
    log = tmp_path / "faults"
    world = os.pathsep.join(filter(None, (str(ROOT / "tests" / "remote_queue"), os.environ.get("PYTHONPATH"))))
    environ = {
        **os.environ,
        "PYTHONPATH": world,
        "MUNIMENT_KILLS": "4",
        "MUNIMENT_TEST_QUEUE_LOG": str(log),
        "MUNIMENT_TEST_QUEUE_SEED": tests,
    }
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    befell = set(log.read_text().splitlines())
    assert {f"{call} {fault}" for call in ("claim", "finish") for fault in ("lost", "twice", "cut")} <= befell, befell
