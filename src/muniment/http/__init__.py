"""HTTP grammar without any I/O: header blocks, codings, cookies, authentication, redirects.

`head` reads answers, `request_head` requests of clients, `added_headers` what a user may add with an option. `cookies`
reads Set-Cookie and has which domains one may be for, `jar` keeps them and has which are sent.

Others import: added_headers, auth, chunked, conditions, cookies, credentials, head, jar, netrc, netscape, redirects,
referrer, request_head, user_agent.
"""
