"""What operators ask of a directory: check, export, inspect, list, explain; `verbs` has what they change.

Others import: captures, check, export, ignore_effect, ignores, indexes, inspect, known_runs, missing_rows, place,
privacy, process_pages, processes, queue, settings_in_force, why.
"""
