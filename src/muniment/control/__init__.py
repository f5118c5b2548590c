"""What operators ask of a directory: check, export, inspect, list, explain; `verbs` has what they change.

Others import: check, done, export, ignores, inspect, place, privacy, processes, why.
"""
