"""HTTP grammar without any I/O: header blocks, codings, cookies, authentication, redirects.

Others import: added_headers, auth, chunked, conditions, cookies, credentials, head, jar, netrc, netscape, redirects,
referrer, request_head, user_agent.
"""
