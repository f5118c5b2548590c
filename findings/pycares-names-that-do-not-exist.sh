#!/bin/sh
# One would guess that a resolver library asks when it is asked, caching being the work of a resolver. c-ares, as pycares
# 5.2.1 (aiodns 4.0.4) has it, keeps that a name does not exist for the minimum of the zone's SOA, in each channel, and
# pycares has no switch for it: a second question within that time sends no packet. A crawler that asks once more before
# it gives a host up learns nothing from the same resolver; a new channel asks anew. `getaddrinfo` of glibc keeps nothing.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/env"
"$place/env/bin/pip" install --quiet --disable-pip-version-check aiodns==4.0.4 pycares==5.2.1 dnslib==0.9.26
cat >"$place/ask.py" <<'PYTHON'
import asyncio
import socket

import aiodns
from dnslib import QTYPE, RCODE, RR, SOA, A
from dnslib.server import BaseResolver, DNSLogger, DNSServer

questions = []


class Zone(BaseResolver):
    """Knows the name from the second question on."""

    def resolve(self, request, handler):
        questions.append(str(request.q.qname))
        reply = request.reply()
        if len(questions) > 1:
            reply.add_answer(RR(request.q.qname, QTYPE.A, ttl=1, rdata=A("192.0.2.1")))
        else:
            reply.header.rcode = RCODE.NXDOMAIN
            reply.add_auth(RR("test.", QTYPE.SOA, ttl=60, rdata=SOA("ns.test.", "hostmaster.test.", (1, 60, 60, 60, 60))))
        return reply


async def ask(resolver):
    try:
        await resolver.query_dns("new.test", "A")
    except aiodns.error.DNSError as error:
        return f"{error.args[1]}; {len(questions)} question sent"
    return f"found; {len(questions)} questions sent"


async def main(port):
    resolvers = [aiodns.DNSResolver(nameservers=["127.0.0.1"], udp_port=port, tcp_port=port) for _ in range(2)]
    for name, resolver in (("first", resolvers[0]), ("again", resolvers[0]), ("another channel", resolvers[1])):
        print(f"{name}: {await ask(resolver)}")


with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = DNSServer(Zone(), address="127.0.0.1", port=port, logger=DNSLogger("-request,-reply"))
server.start_thread()
asyncio.run(main(port))
server.stop()
PYTHON
"$place/env/bin/python" "$place/ask.py" >"$place/seen"
cat >"$place/expected" <<'LINES'
first: Domain name not found; 1 question sent
again: Domain name not found; 1 question sent
another channel: found; 2 questions sent
LINES
echo "aiodns 4.0.4, pycares 5.2.1, a zone whose SOA has a minimum of 60 s:"
cat "$place/seen"
cmp "$place/expected" "$place/seen"
