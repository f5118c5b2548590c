"""What operators ask of a directory: check, export, inspect, list, explain; `verbs` has what they change.

One module for each question: `why` of a URL, `ignore_effect` of a pattern, `queue` of what waits.

Others import: check, export, hook_reports, hook_settings, hooks, ignores, indexes, inspect, missing_rows, privacy,
process_pages, processes, results, tracker_location, why.
"""
