"""What operators ask of the live plane: its firehose, its state, and that it writes its layout anew.

Others import: directory, firehose, rebuild, server.
"""
