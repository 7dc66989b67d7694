"""Ports of this machine that nobody listens on."""

import socket


def unused_port() -> int:
    """The kernel hands ports out in turn, so the one just let go is not given to somebody else at once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
