"""ArchiveBot's websocket server on the loopback alone, and a browser's part; for Python 3.9 with websockets 7.0.

python dashboard.py serve CHECKOUT PORT: serves what comes on standard input.
python dashboard.py receive PORT: prints what is sent, a line for each message, until it is killed.
"""

import asyncio
import runpy
import sys

import websockets

verb, *given = sys.argv[1:]


def serve(checkout, port):
    """Run the program of the checkout; it would listen on all addresses, and on one port."""
    listen = websockets.serve
    websockets.serve = lambda handler, _host, _port, **more: listen(handler, "127.0.0.1", int(port), **more)
    runpy.run_path(checkout + "/dashboard/websocket.py", run_name="__main__")


def receive(port):
    """Print what comes."""
    asyncio.get_event_loop().run_until_complete(_receive(port))


async def _receive(port):
    async with websockets.connect(f"ws://127.0.0.1:{port}/", max_size=None) as socket:
        print("connected", flush=True)
        while True:
            print(await socket.recv(), flush=True)


{"serve": serve, "receive": receive}[verb](*given)
