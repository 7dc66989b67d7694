"""TCP ports of this machine that are not in use."""

import socket


def unused_port() -> int:
    """Return a port that was free just now; the kernel does not assign the same one again soon."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
