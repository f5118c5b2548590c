"""One function per operator verb; the read side for status."""
