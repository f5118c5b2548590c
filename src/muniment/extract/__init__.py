"""Links out of documents: bytes in, references out, with no IO, no await and no clock."""
