"""Decide from tables of networks which IP addresses the gateway may connect to."""

import errno
import ipaddress
import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from penstock.net.errors import NotSent

# The tables hold every entry of the IANA special-purpose registries, also those that can be reached from anywhere, and
# addresses at which clouds serve credentials. What the standard library says (`is_global`, `is_private`) is not
# used: it differs between versions of Python, and lets some cloud addresses and embedded IPv4 addresses pass.
_BLOCKED_IPV4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; Alibaba's metadata at 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's wire server, on a public address
        "169.254.0.0/16",  # link-local; most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata at 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112 sinks
        "192.52.193.0/24",  # multicast tunnels (AMT)
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112 sinks
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# An IPv4-mapped address is judged as the IPv4 address inside, because that is where the kernel connects to.
_IPV4_MAPPED = IPv6Network("::ffff:0:0/96")
# Of IPv6 only global unicast can be public. The other special networks (loopback, link-local, unique local, multicast,
# discard-only, segment routing) lie outside it.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_BLOCKED_IPV6 = tuple(
    IPv6Network(block)
    for block in (
        # Networks with an IPv4 address inside, which a translator or a tunnel may reach: blocked whatever it is.
        "::/96",  # IPv4-compatible
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64 of a local network
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        # Special networks within global unicast.
        "2001::/23",  # protocol assignments
        "2001:db8::/32",  # documentation
        "2620:4f:8000::/48",  # AS112 sinks
        "3fff::/20",  # documentation
    )
)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an IP address, an IPv4-mapped one as IPv4; None when the text is none or has a scope id."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    if address.scope_id:
        return None
    return IPv4Address(int(address) & 0xFFFF_FFFF) if address in _IPV4_MAPPED else address


def is_blocked(text: str) -> bool:
    """Whether an IP address must not be connected to for a URL that a caller supplied; True when it is none."""
    address = parse_address(text)
    if isinstance(address, IPv4Address):
        return any(address in network for network in _BLOCKED_IPV4)
    if isinstance(address, IPv6Address):
        return address not in _GLOBAL_UNICAST or any(address in network for network in _BLOCKED_IPV6)
    return True


def ipv6_text(address: IPv6Address) -> str:
    """Write an IPv6 address as URLs have it: hexadecimal groups, the longest run of zeros shortened.

    `str` is not used, because since Python 3.13 it writes an IPv4-mapped address with dots, which URL parsers do not.
    """
    groups = [f"{int(address) >> shift & 0xFFFF:x}" for shift in range(112, -16, -16)]
    start, length = _longest_run_of_zeros(groups)
    if length < 2:
        return ":".join(groups)
    return ":".join(groups[:start]) + "::" + ":".join(groups[start + length :])


def _longest_run_of_zeros(groups: list[str]) -> tuple[int, int]:
    """Return where the longest run of zero groups starts, and its length; the first of several."""
    best = (0, 0)
    start = 0
    for position, group in enumerate(groups):
        if group != "0":
            start = position + 1
        elif position + 1 - start > best[1]:
            best = (start, position + 1 - start)
    return best


def is_own_address(text: str) -> bool:
    """Whether an IP address belongs to this machine: then the kernel would connect to it from the same address.

    Connecting a datagram socket only looks up the route; nothing is sent.
    """
    address = ipaddress.ip_address(text)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((text, 9))
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise NotSent("out of file descriptors", local=True) from None
        return False  # there is no route


@lru_cache(256)
def is_ip_address(host: str) -> bool:
    """Whether a host is written as an IP address, not as a name."""
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False
