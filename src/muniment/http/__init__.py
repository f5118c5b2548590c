"""HTTP grammar without any I/O: header blocks, codings, cookies, authentication, redirects.

`head` reads answers, `request_head` requests of clients, `added_headers` what a user may add with an option.

Others import: added_headers, auth, chunked, conditions, cookies, credentials, head, jar, netrc, netscape, redirects,
referrer, request_head, user_agent.
"""
