"""The proxy in front of an answerer: it ends TLS, reads requests of browsers and hooks, and hands answers on.

A process has one `page_proxy.PageProxy`, with a certificate authority made in its memory. Whoever owns a page opens a
port for it, so that each request belongs to a page without guessing:

    proxy = engine.page_proxy()                              # HttpEngine: what goes through is recorded
    port = await proxy.open(PageOwner(page_id=str(uuid4()), url=claim.url, host=claim.host, depth=claim.depth,
                                      attempt=claim.attempt, engine="browser"), notify, type_of)
    port.address                                             # "127.0.0.1:PORT": a context's proxyServer, HTTPS_PROXY
    proxy.authority.spki_sha256, proxy.authority.pem         # for Chromium's flag; for SSL_CERT_FILE of hooks
    await port.close(5.0)                                    # what is in flight ends within 5 s, cut: `time`

The function `notify` gets `RequestBegun`, `RequestAnswered` when a header block came, then one `RequestEnded` of the
same number (the port counts those between as `in_flight`). One that was refused has `refused` (its code: robots,
private-address, dead-host, limit…), was answered 403 and has no record. `type_of` names the resource type of a
request when its exchange has ended (what CDP said of it); without it `Sec-Fetch-Dest` does.

An answer of 206 is a part: leave its URL among the page's requisites, and the engine asks for the whole once.

An `Answerer` is what stands behind a port: the recording one is in `crawl.worker`, replay has its own. It is called
once for each request, also when the client hung up meanwhile, and hands the answer to an `AnswerTaker` as it comes.

Others import: answerer, events, page_port, page_proxy, resource_types.
"""
