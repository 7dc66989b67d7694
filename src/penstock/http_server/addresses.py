"""Find the IP address of a client, also behind proxies that the settings trust."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

_IPV6_PREFIX = 64  # what one customer of a network has at least, so its addresses count as one


class Proxies:
    """The proxies whose `X-Forwarded-For` is believed."""

    def __init__(self, trusted: Iterable[str]) -> None:
        """`trusted` are addresses, networks, or `*` for everybody; the settings see to that."""
        named = set(trusted)
        self._trusts_all = "*" in named
        self._networks = [ip_network(text) for text in named - {"*"}]

    def trust(self, host: str) -> bool:
        if self._trusts_all or not self._networks:
            return self._trusts_all
        address = _address(host)
        return address is not None and any(address in network for network in self._networks)

    def client(self, forwarded: str) -> str:
        """Return the address that the first trusted proxy saw; empty if the header has none.

        Every proxy adds the address it saw at the end, so the last one that is no proxy of ours is the client's.
        """
        hosts = [_without_port(part.strip()) for part in forwarded.split(",")]
        return next((host for host in reversed(hosts) if host and not self.trust(host)), hosts[0])


def host_and_port(name: Any) -> tuple[str, int] | None:
    """The address and the port in the name of a socket; None if it has none, such as that of a Unix socket."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) and len(name) >= 2 else None


@lru_cache(maxsize=4096)
def address_group(host: str) -> str:
    """Return the name under which connections of an address are counted: IPv6 addresses count by their network."""
    address = _address(host)
    if not isinstance(address, IPv6Address):
        return host[:64]
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, _IPV6_PREFIX), strict=False))


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None
