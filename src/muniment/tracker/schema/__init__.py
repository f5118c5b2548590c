"""Every table of the tracker, with its columns explained."""
