"""Pure decisions: values in, a verdict out; no clock, no file, no network."""
