"""HTTP grammar without any I/O: header blocks, codings, cookies, authentication, redirects."""
