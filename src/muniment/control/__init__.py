"""What operators ask of a directory: check, export, inspect, list, explain; `verbs` has what they change.

<<<<<<< HEAD
Others import: check, export, ignores, indexes, inspect, missing_rows, place, privacy, processes, results, why.
=======
Others import: check, export, hook_reports, hook_settings, hooks, ignores, indexes, inspect, missing_rows, place,
privacy, processes, why.
>>>>>>> 247974a66f5e57d6974cb9204c4139f340c105a6
"""
