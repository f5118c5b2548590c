"""The web pages: jobs seen and steered in the browser, over local runs or a tracker. HTML by the server, one script.

`…_pages` have the pages and lists, `templates/parts.html` and `static/dashboard.js` the classes of log lines,
`static/dashboard.css` their colours. `event_stream` has what is sent live, `sign_in` a session at a server, `tickets`
one at `muniment dashboard`, `origin_check` which requests are refused.

Others import: run, server_site.
"""
