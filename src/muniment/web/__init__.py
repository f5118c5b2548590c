"""The server: the API of a tracker over HTTP, for pipelines and operators.

`…_routes` have the routes, `authentication` whose request it is and how guesses are slowed down, `serving` how long
requests may take when it stops, `refusals` how errors read, `polls` how long requests wait, `upkeep` what happens by
itself.

Others import: serving.
"""
