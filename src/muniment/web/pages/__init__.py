"""The web pages: jobs seen and steered in the browser, over local runs or a tracker. HTML by the server, one script.

Others import: run, server_site.
"""
