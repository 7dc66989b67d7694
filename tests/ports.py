"""TCP ports of this machine that are not in use."""

import secrets
import socket

# Below the ports that Linux and macOS choose by themselves, for connections and for servers that ask for any port: such
# a port could be taken before the test uses it.
FIRST = 12_000
LAST = 32_000


def unused_port() -> int:
    """Return a port that was free just now, one of so many that no other test is likely to choose it too."""
    while True:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
