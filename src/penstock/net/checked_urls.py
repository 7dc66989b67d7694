"""Check URLs that callers and providers supplied against the egress rules, before a request and at connect time."""

import ipaddress
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from urllib.parse import quote

import idna
import msgspec

from penstock.errors import InvalidRequest
from penstock.net.addresses import ipv6_text, is_blocked, parse_address
from penstock.net.errors import UrlBlocked
from penstock.settings import Settings

_REQUIREMENT = "must be an https:// URL with a public domain name, on port 443 or 8443."
_OTHER_HOSTS = "The operator can allow other hosts, such as localhost, with PENSTOCK_EGRESS_ALLOW_HOSTS."

# --------------------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class EgressRules:
    """The hosts and networks that the operator allows in addition to public ones; they come from the settings only.

    A listed host, or an IP address in the URL that lies in a listed network, may be reached by plain http and on any
    port. A name that only resolves to an IP address in a listed network still needs https and port 443 or 8443.
    """

    allow_cidrs: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for block in self.allow_cidrs:
            _network(block)  # a malformed block is reported at the start, not at the first delivery
        object.__setattr__(self, "allow_hosts", tuple(host.strip("[]").lower() for host in self.allow_hosts))

    def lists(self, host: str) -> bool:
        """Whether the host is listed, or is an IP address in a listed network."""
        return host in self.allow_hosts or self._lists_address(host)

    def permits(self, host: str, address: str, *, own: bool = False) -> bool:
        """Whether a connection for `host` may go to the IP address; `own` says that it belongs to this machine."""
        return self.lists(host) or self._lists_address(address) or not (own or is_blocked(address))

    def _lists_address(self, text: str) -> bool:
        if not self.allow_cidrs or (address := parse_address(text)) is None:
            return False
        return any(address in _network(block) for block in self.allow_cidrs)


@cache
def _network(block: str) -> IPv4Network | IPv6Network:
    return ipaddress.ip_network(block)


NO_EXCEPTIONS = EgressRules()
_rules = cache(EgressRules)


def egress_rules(settings: Settings) -> EgressRules:
    """The rules of the settings, built once."""
    return _rules(settings.egress_allow_cidrs, settings.egress_allow_hosts)


# ---------------------------------------------------------------------------------------------------------------- URLs

# Each name is blocked together with everything below it.
_BLOCKED_NAMES = (
    "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "svc",
    "arpa", "test", "invalid", "onion", "alt",
    "metadata", "metadata.goog", "metadata.azure.com", "instance-data", "kubernetes.default",
)  # fmt: skip

# The only parser of URLs that others supplied. It rejects what two parsers could read differently (user info,
# backslashes, tabs, odd ports, percent signs in hosts), and accepted URLs are rebuilt from their parts.
_URL = re.compile(
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://"
    r"(?P<host>[^\x00-\x20\x7f/?#\\@:\[\]%]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]*)?"
    r"(?P<path>(?:/[^\x00-\x20\x7f?#\\]*)?)(?P<query>(?:\?[^\x00-\x20\x7f#\\]*)?)"
    r"(?P<fragment>(?:\#[^\x00-\x20\x7f\\]*)?)"
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ANY_PORT = re.compile(r":[1-9][0-9]{0,4}")
_PUBLIC_PORTS: dict[str | None, int] = {None: 443, ":443": 443, ":8443": 8443}
_DEFAULT_PORTS = {"https": 443, "http": 80}
_MAX_HOST_LENGTH = 253
_MAX_WEBHOOK_URL_LENGTH = 2048
_MAX_MEDIA_URL_LENGTH = 8192  # signed URLs of object stores can contain a whole session token
_FILE_FIELD = re.compile(r"url|image|audio|video|file|uuid", re.IGNORECASE)
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


class CheckedUrl(msgspec.Struct, frozen=True):
    """The parts of a checked URL; connect only to `url`, which is built from them."""

    scheme: str
    host: str  # ASCII, lower case, an IPv6 address without its brackets
    port: int
    path: str  # with the query

    @property
    def url(self) -> str:
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}{port}{self.path}"


def check_webhook_url(text: str, egress: EgressRules = NO_EXCEPTIONS) -> str:
    """Return the URL to store and to deliver to; raise InvalidRequest when it breaks a rule."""
    try:
        return _webhook_url(text, egress)
    except ValueError:
        raise InvalidRequest(f"webhook_url {_REQUIREMENT} {_OTHER_HOSTS}", param="webhook_url") from None


@lru_cache(256)  # the webhooks of an organization go to few URLs
def _webhook_url(text: str, egress: EgressRules) -> str:
    parts = _split(text, _MAX_WEBHOOK_URL_LENGTH)
    if parts["fragment"]:
        raise InvalidRequest("`webhook_url` must not have a fragment (`#…`).", param="webhook_url")
    if not (parts["path"] + parts["query"]).isascii():
        raise InvalidRequest("`webhook_url` must be ASCII: escape other characters.", param="webhook_url")
    return _check_target(parts, egress).url


def check_endpoint(text: str, param: str, egress: EgressRules = NO_EXCEPTIONS) -> str:
    """Return the URL of a server, without a path; raise InvalidRequest when it breaks a rule."""
    try:
        checked = _check_target(_split(text, _MAX_WEBHOOK_URL_LENGTH), egress)
    except ValueError:
        raise InvalidRequest(f"`{param}` {_REQUIREMENT} {_OTHER_HOSTS}", param=param) from None
    if checked.path != "/":
        raise InvalidRequest(f"`{param}` must have no path.", param=param)
    return checked.url.removesuffix("/")


def check_media_url(text: str, param: str, egress: EgressRules = NO_EXCEPTIONS) -> str:
    """Return the URL of an input image to fetch; raise InvalidRequest when it breaks a rule."""
    try:
        return _check_target(_split(text, _MAX_MEDIA_URL_LENGTH), egress).url
    except ValueError:
        raise InvalidRequest(f"`{param}` {_REQUIREMENT[:-1]}, or a base64 data URI.", param=param) from None


def check_fetch_url(text: str, egress: EgressRules = NO_EXCEPTIONS) -> CheckedUrl:
    """Return where a fetch or a delivery is about to connect to; raise UrlBlocked when the URL breaks a rule."""
    try:
        return _fetch_target(text, egress)
    except ValueError:
        raise UrlBlocked from None


@lru_cache(256)
def _fetch_target(text: str, egress: EgressRules) -> CheckedUrl:
    return _check_target(_split(text, _MAX_MEDIA_URL_LENGTH), egress)


def names_file(field: str) -> bool:
    """Whether a field of a message or of a part of it may name a file, by its name.

    Some servers read such fields whatever the type of the part is, and would fetch URLs that nobody checked.
    """
    return _FILE_FIELD.search(field) is not None


def is_public_url(text: str) -> bool:
    """Whether a URL keeps the rules without any exception of the operator's."""
    try:
        check_fetch_url(text)
    except UrlBlocked:
        return False
    return True


def _split(text: str, max_length: int) -> re.Match[str]:
    match = _URL.fullmatch(text) if len(text) <= max_length else None
    if match is None:
        raise ValueError
    return match


def _check_target(parts: re.Match[str], egress: EgressRules) -> CheckedUrl:
    scheme = parts["scheme"].lower()
    host = _canonical_host(parts["host"])
    port = parts["port"]
    # The path and the query do not change where we connect to, so text outside ASCII is quoted as browsers do it.
    path = quote((parts["path"] or "/") + parts["query"], safe=_PRINTABLE)
    if egress.lists(host):
        return CheckedUrl(scheme, host, _parse_port(port, scheme), path)
    if scheme != "https" or not _is_public_name(host) or port not in _PUBLIC_PORTS:
        raise ValueError
    return CheckedUrl(scheme, host, _PUBLIC_PORTS[port], path)


def _canonical_host(text: str) -> str:
    if text.startswith("["):
        return ipv6_text(IPv6Address(text[1:-1]))
    host = text.lower()
    if len(host) > _MAX_HOST_LENGTH:
        raise ValueError
    if not host.isascii() or "xn--" in host:
        # Look-alike characters are replaced by the letters and digits they stand for, and the result is checked.
        host = idna.encode(host, uts46=True, std3_rules=True).decode()
    return host


def _parse_port(text: str | None, scheme: str) -> int:
    if text is None:
        return _DEFAULT_PORTS[scheme]
    if not _ANY_PORT.fullmatch(text) or int(text[1:]) > 65_535:
        raise ValueError
    return int(text[1:])


def _is_public_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(host) <= _MAX_HOST_LENGTH
        and len(labels) >= 2
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])  # some resolvers read 127.0.0.1, 2130706433 and 0x7f.1 as IP addresses
        and not any(host == name or host.endswith(f".{name}") for name in _BLOCKED_NAMES)
    )
