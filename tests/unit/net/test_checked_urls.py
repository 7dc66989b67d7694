"""Which URLs are accepted, and in which form those that it accepts."""

import string
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import InvalidRequest
from penstock.net import checked_urls
from penstock.net.checked_urls import EgressRules, check_fetch_url, check_media_url, check_webhook_url
from penstock.net.errors import UrlBlocked
from penstock.net.http1 import Http1Client, TimeLimits
from penstock.providers.spec import HttpRequest
from tests.unit.net.forbidden_urls import FORBIDDEN

LAB = EgressRules(("127.0.0.0/8", "::1/128", "fd00::/8"), ("minio.lan", "Printer", "[2001:db8::7]"))

# ------------------------------------------------------------------------------------------------------------ spelling


INTERNAL_NAMES = [
    "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "arpa",
    "test", "invalid", "onion", "alt", "cluster.local", "svc", "metadata", "metadata.google.internal", "metadata.goog",
    "instance-data", "instance-data.ec2.internal", "metadata.azure.com", "metadata.azure.internal",
    "kubernetes.default",
]  # fmt: skip


REQUIREMENT = "must be an https:// URL with a public domain name, on port 443 or 8443."
OTHER_HOSTS = "The operator can allow other hosts, such as localhost, with PENSTOCK_EGRESS_ALLOW_HOSTS."


def problem_with(check: Callable[..., object], *arguments: object) -> tuple[str, str | None, int] | None:
    """Message, parameter and status of the error that a check raises; None when it accepts."""
    try:
        check(*arguments)
    except InvalidRequest as error:
        return error.message, error.param, error.status
    return None


def is_fetch_blocked(text: str, egress: EgressRules = checked_urls.NO_EXCEPTIONS) -> bool:
    try:
        check_fetch_url(text, egress)
    except UrlBlocked:
        return True
    return False


def test_no_spelling_of_a_forbidden_url_is_accepted_and_every_error_reads_the_same() -> None:
    webhook_error = (f"webhook_url {REQUIREMENT} {OTHER_HOSTS}", "webhook_url", 400)
    media_error = (f"`image_url` {REQUIREMENT[:-1]}, or a base64 data URI.", "image_url", 400)
    wrong = [text for text in FORBIDDEN if not problem_with(check_webhook_url, text)]
    wrong += [
        text
        for text in FORBIDDEN
        if "#" not in text and text.isascii() and problem_with(check_webhook_url, text) != webhook_error
    ]
    for text in FORBIDDEN:
        if "#" not in text:
            wrong += [text] * (problem_with(check_media_url, text, "image_url") != media_error)
            wrong += [text] * (not is_fetch_blocked(text))
    assert not wrong, list(map(ascii, wrong))


def test_internal_names_and_everything_below_them_are_blocked() -> None:
    wrong = []
    for name in INTERNAL_NAMES:
        internal = (name, f"api.{name}", f"a.b.{name}", f"api.{name}".upper())
        public = (f"not{name}.example", f"{name}.example")
        wrong += [host for host in internal if problem_with(check_webhook_url, f"https://{host}/") is None]
        wrong += [host for host in public if problem_with(check_webhook_url, f"https://{host}/")]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "rebuilt"),
    [
        ("https://x.example", "https://x.example/"),
        ("https://x.example?a=b", "https://x.example/?a=b"),
        ("https://X.Example:443/a", "https://x.example/a"),
        ("https://x.example:8443/a//b/?c=d&e=%20", "https://x.example:8443/a//b/?c=d&e=%20"),
        ("https://r3---sn-4g5e.x.example/", "https://r3---sn-4g5e.x.example/"),
        ("https://1.2.3.com/", "https://1.2.3.com/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER。example/", "https://xn--bcher-kva.example/"),
        ("https://XN--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
    ],
)
def test_accepted_urls_are_written_in_one_form(text: str, rebuilt: str) -> None:
    assert check_webhook_url(text) == rebuilt
    assert check_media_url(text, "image_url") == rebuilt
    assert check_fetch_url(text).url == rebuilt


def test_webhook_urls_must_be_ascii_and_have_no_fragment() -> None:
    assert check_media_url("https://x.example/ü?ä#top", "image_url") == "https://x.example/%C3%BC?%C3%A4"
    for text in ("https://x.example/#", "https://x.example/ü", "https://x.example/?ü"):
        with pytest.raises(InvalidRequest):
            check_webhook_url(text)


def test_urls_have_a_maximum_length() -> None:
    base = "https://x.example/"
    assert check_webhook_url(base + "a" * (2048 - len(base)))
    assert check_media_url(base + "a" * (8192 - len(base)), "image_url")
    with pytest.raises(InvalidRequest):
        check_webhook_url(base + "a" * (2049 - len(base)))
    with pytest.raises(InvalidRequest):
        check_media_url(base + "a" * (8193 - len(base)), "image_url")


# ------------------------------------------------------------------------------------------------ operator's exceptions


@pytest.mark.parametrize(
    ("text", "rebuilt"),
    [
        ("http://127.0.0.1:9000/a", "http://127.0.0.1:9000/a"),
        ("https://127.8.9.10", "https://127.8.9.10/"),
        ("http://127.0.0.1:80/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://[fd00::0001]/", "http://[fd00::1]/"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://MinIO.lan:9000/bucket", "http://minio.lan:9000/bucket"),
        ("http://printer/", "http://printer/"),
        ("http://[2001:db8::7]/", "http://[2001:db8::7]/"),
    ],
)
def test_the_operator_can_allow_hosts_and_networks(text: str, rebuilt: str) -> None:
    assert check_webhook_url(text, LAB) == rebuilt
    assert check_media_url(text, "image_url", LAB) == rebuilt
    assert check_fetch_url(text, LAB).url == rebuilt
    assert is_fetch_blocked(text)


STILL_BLOCKED = [
    "http://10.0.0.1/",
    "http://x.example/",
    "https://x.example:9000/",
    "http://api.minio.lan/",
    "http://minio.lan:0/",
    "http://minio.lan:65536/",
    "http://minio.lan:080/",
    "http://user@127.0.0.1/",
    "http://2130706433/",
    "http://127.1/",
    "https://localhost/",
    "http://[::1%25lo]/",
]


def test_an_allowed_host_or_network_allows_nothing_else() -> None:
    assert [text for text in STILL_BLOCKED if not is_fetch_blocked(text, LAB)] == []


def test_a_malformed_network_is_reported_when_the_rules_are_created() -> None:
    for block in ("127.0.0.1/8", "10.0.0.0/33", "localhost"):
        with pytest.raises(ValueError, match=block):
            EgressRules((block,))


def test_an_ip_address_of_this_machine_is_blocked_even_if_public() -> None:
    assert checked_urls.NO_EXCEPTIONS.permits("x.example", "8.8.8.8")
    assert not checked_urls.NO_EXCEPTIONS.permits("x.example", "8.8.8.8", own=True)
    assert EgressRules(("8.8.8.8/32",)).permits("x.example", "8.8.8.8", own=True)


def test_listed_hosts_and_networks_are_permitted_at_connect_time() -> None:
    assert LAB.permits("x.example", "127.0.0.1")
    assert LAB.permits("x.example", "::ffff:127.0.0.1")
    assert LAB.permits("minio.lan", "192.168.1.9")
    assert not LAB.permits("x.example", "192.168.1.9")
    assert not LAB.permits("x.example", "")


# ---------------------------------------------------------------------------------------------------------------- fuzz

_HOST_CHARS = st.sampled_from(
    string.ascii_letters + string.digits + "-.。_%@:[]\\/?#\t ①ⓛßüЖ中\u00ad\u200d\u202e\ud800"
)
_ALMOST = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["https://", "http://", "HTTPS://", "https:/", "https:", "//", "ftp://", "https:\\\\", ""]),
    st.one_of(
        st.text(_HOST_CHARS, max_size=40),
        st.sampled_from(
            ["127.0.0.1", "[::1]", "x.example", "printer", "minio.lan", "localhost", "xn--bcher-kva.example"]
        ),
        st.ip_addresses().map(str),
    ),
    st.sampled_from(["", ":", ":443", ":8443", ":0443", ":99999", ":80", "@x.example", "\\@x.example", ":1@x.example"]),
    st.sampled_from(["", "/", "/a/../b", "/%2e%2e/", "//x.example/", "/\\x.example", "?", "#", "?@x.example/"]),
    st.text(max_size=20),
)  # fmt: skip
_ANYTHING = st.one_of(st.text(max_size=100), _ALMOST)


async def look_up_nothing(host: str, port: int, seconds: float) -> list[str]:
    return []


@given(_ANYTHING, st.sampled_from([checked_urls.NO_EXCEPTIONS, LAB]))
@example("https://xn--.example/", checked_urls.NO_EXCEPTIONS)
@example("https://x.example/?{}|`^\"<>'", checked_urls.NO_EXCEPTIONS)
def test_the_parser_raises_only_its_own_errors_and_the_http_client_reads_the_same_host(
    text: str, egress: EgressRules
) -> None:
    checks: list[Callable[[], str]] = [
        lambda: check_webhook_url(text, egress),
        lambda: check_media_url(text, "image_url", egress),
        lambda: check_fetch_url(text, egress).url,
    ]
    client = Http1Client(look_up_nothing, None, idle_seconds=20)
    for check in checks:
        try:
            rebuilt = check()
        except (InvalidRequest, UrlBlocked):
            continue
        target = check_fetch_url(rebuilt, egress)
        origin = client.exchange(HttpRequest("GET", rebuilt), TimeLimits(1, 1)).origin
        assert target.url == rebuilt
        assert rebuilt.isascii()
        assert (origin.host, origin.port, origin.is_tls) == (target.host, target.port, target.scheme == "https")
