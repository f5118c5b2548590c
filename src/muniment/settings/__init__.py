"""Settings: the one table of options, how their values are read, and what the environment says.

<<<<<<< HEAD
Others import: environment, rendering, table, values, written.
=======
Others import: environment, hooks, live, table, values, written.
>>>>>>> 247974a66f5e57d6974cb9204c4139f340c105a6
"""
