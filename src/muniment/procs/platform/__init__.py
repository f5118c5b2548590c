"""What the operating system tells of processes."""
