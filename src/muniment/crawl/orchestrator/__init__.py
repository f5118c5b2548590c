"""The orchestrator: hands out pages, decides how hosts are treated, owns workers, files and limits of one run."""
