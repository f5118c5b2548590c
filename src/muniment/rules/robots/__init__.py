"""robots.txt and robots meta words (RFC 9309)."""
