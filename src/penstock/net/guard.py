"""Addresses we refuse to reach, at validation and at connect time."""

import ipaddress
import re
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import quote

import idna

from penstock.errors import InvalidRequest

# Whoever supplied an address learns only that it was no use: which rule, which answer of the name service or which
# timeout it was would turn the gateway into a scanner of its own network.
UNREACHABLE = "The address could not be reached."
_MUST_BE = "must be an https:// address of a public domain name, on port 443 or 8443."

# ----------------------------------------------------------------------------------------------------------- addresses

# The standard library's `is_global` is no substitute: on supported Pythons it passes 192.0.0.192 and 168.63.129.16
# (cloud metadata), multicast, and IPv6 forms that carry an IPv4 address inside (6to4, NAT64, IPv4-compatible).
_REFUSED_IPV4 = tuple(
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
# IPv6 is the other way round: only global unicast can be public, and holes are cut into it.
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_REFUSED_IPV6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments; Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
    )
)


def is_refused(address: str) -> bool:
    """Whether an IP address is one that strangers may not send us to; anything unreadable is."""
    parsed = _address(address)
    if isinstance(parsed, IPv4Address):
        return any(parsed in block for block in _REFUSED_IPV4)
    if isinstance(parsed, IPv6Address):
        return parsed not in _PUBLIC_IPV6 or any(parsed in block for block in _REFUSED_IPV6)
    return True


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """IPv4-mapped IPv6 is judged as the IPv4 address that the kernel would connect to; scope ids are no address."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address):
        return None if parsed.scope_id else parsed.ipv4_mapped or parsed
    return parsed


# -------------------------------------------------------------------------------------------------- operator's choices


@dataclass(frozen=True, slots=True)
class Egress:
    """The operator's exceptions, from the settings and never from a request.

    A host named here, or an IP literal inside one of the blocks, may be reached by plain http and on any port. A name
    that merely resolves into one of the blocks is still held to https and the two ports.
    """

    allow_cidrs: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for block in self.allow_cidrs:
            _network(block)  # a typing error should stop the start, not a delivery a week later
        object.__setattr__(self, "allow_hosts", tuple(host.strip("[]").lower() for host in self.allow_hosts))

    def names(self, host: str) -> bool:
        """Whether the operator listed this very host, or the block that holds this literal."""
        return host in self.allow_hosts or self._holds(host)

    def permits(self, host: str, address: str, *, own: bool = False) -> bool:
        """Whether a connection for `host` may go to `address`; `own` says that the address is this machine's."""
        return self.names(host) or self._holds(address) or not (own or is_refused(address))

    def _holds(self, text: str) -> bool:
        if not self.allow_cidrs or (address := _address(text)) is None:
            return False
        return any(address in _network(block) for block in self.allow_cidrs)


@cache
def _network(block: str) -> IPv4Network | IPv6Network:
    return ipaddress.ip_network(block)


NO_EXCEPTIONS = Egress()

# ---------------------------------------------------------------------------------------------------------------- URLs

# Each stands for itself and for everything below it.
_REFUSED_NAMES = (
    "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "svc",
    "arpa", "test", "invalid", "onion", "alt",
    "metadata", "metadata.goog", "metadata.azure.com", "instance-data", "kubernetes.default",
)  # fmt: skip

# The only parser for addresses that others chose. Where two parsers could disagree (user info, backslashes, tabs, odd
# ports, percent signs in hosts) it refuses, and what it accepts is rebuilt from its parts.
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[^\x00-\x20\x7f/?#\\@:\[\]%]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]*)?"
    r"(?P<path>(?:/[^\x00-\x20\x7f?#\\]*)?)(?P<query>(?:\?[^\x00-\x20\x7f#\\]*)?)"
    r"(?P<fragment>(?:\#[^\x00-\x20\x7f\\]*)?)"
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ANY_PORT = re.compile(r":[1-9][0-9]{0,4}")
_PUBLIC_PORTS: dict[str | None, int] = {None: 443, ":443": 443, ":8443": 8443}
_DEFAULT_PORTS = {"https": 443, "http": 80}
_LONGEST_HOST = 253
_LONGEST_WEBHOOK_URL = 2048
_LONGEST_MEDIA_URL = 8192  # signed addresses of object stores carry whole session tokens
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class Target:
    """A checked address in parts; `url` is the only spelling of it to be used from here on."""

    scheme: str
    host: str  # ASCII, lower case, a literal without its brackets
    port: int
    path: str  # and query

    @property
    def url(self) -> str:
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}{port}{self.path}"


def check_webhook_url(text: str, egress: Egress = NO_EXCEPTIONS) -> str:
    """The address to store and to deliver to; InvalidRequest when it breaks a rule."""
    try:
        parts = _split(text, _LONGEST_WEBHOOK_URL)
        if parts["fragment"] or not (parts["path"] + parts["query"]).isascii():
            raise ValueError
        return _target(parts, egress).url
    except ValueError:
        raise InvalidRequest(f"webhook_url {_MUST_BE}", param="webhook_url") from None


def check_media_url(text: str, param: str, egress: Egress = NO_EXCEPTIONS) -> str:
    """The address of a picture that a caller wants fetched; InvalidRequest when it breaks a rule."""
    try:
        return _target(_split(text, _LONGEST_MEDIA_URL), egress).url
    except ValueError:
        raise InvalidRequest(f"{param} {_MUST_BE}", param=param) from None


def check_fetch_url(text: str, egress: Egress = NO_EXCEPTIONS) -> Target:
    """Where a fetch or a delivery is about to go, whoever chose it; InvalidRequest when it breaks a rule."""
    try:
        return _target(_split(text, _LONGEST_MEDIA_URL), egress)
    except ValueError:
        raise InvalidRequest(UNREACHABLE) from None


def _split(text: str, longest: int) -> re.Match[str]:
    match = _URL.fullmatch(text) if len(text) <= longest else None
    if match is None:
        raise ValueError
    return match


def _target(parts: re.Match[str], egress: Egress) -> Target:
    scheme, host, port = parts["scheme"], _host(parts["host"]), parts["port"]
    # Nothing after the host can change where we go, so text outside ASCII is written the way browsers write it.
    path = quote((parts["path"] or "/") + parts["query"], safe=_PRINTABLE)
    if egress.names(host):
        return Target(scheme, host, _any_port(port, scheme), path)
    if scheme != "https" or not _is_public_name(host) or port not in _PUBLIC_PORTS:
        raise ValueError
    return Target(scheme, host, _PUBLIC_PORTS[port], path)


def _host(text: str) -> str:
    if text.startswith("["):
        return str(IPv6Address(text[1:-1]))
    host = text.lower()
    if len(host) > _LONGEST_HOST:
        raise ValueError
    if not host.isascii() or "xn--" in host:
        # Look-alikes become the letters and digits they stand for, and are judged as those.
        host = idna.encode(host, uts46=True, std3_rules=True).decode()
    return host


def _any_port(text: str | None, scheme: str) -> int:
    if text is None:
        return _DEFAULT_PORTS[scheme]
    if not _ANY_PORT.fullmatch(text) or int(text[1:]) > 65_535:
        raise ValueError
    return int(text[1:])


def _is_public_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(host) <= _LONGEST_HOST
        and len(labels) >= 2
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])  # 127.0.0.1, 2130706433, 0x7f.1: some resolver reads each as an address
        and not any(host == name or host.endswith(f".{name}") for name in _REFUSED_NAMES)
    )
