"""Which addresses are refused, by spelling and by number."""

import ipaddress
import string
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyreqwest.http import Url

from penstock.errors import InvalidRequest
from penstock.net import guard
from penstock.net.guard import Egress, check_fetch_url, check_media_url, check_webhook_url, is_refused

LAB = Egress(("127.0.0.0/8", "::1/128", "fd00::/8"), ("minio.lan", "Printer", "[2001:db8::7]"))

# ------------------------------------------------------------------------------------------------------------ spelling

NEVER = [
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://1.0x/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://a.b.1/",
    "https://8.8.8.8/",
    "https://[::1]/",
    "https://[2606:4700::1111]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[fe80::1%25eth0]/",
    "https://①②⑦.⓪.⓪.①/",
    "https://localhost/",
    "https://localhost./",
    "https://LOCALHOST/",
    "https://ⓛocalhost/",
    "https://foo.localhost/",
    "https://a@127.0.0.1/",
    "https://a@x.example/",
    "https://a:b@x.example/",
    "https://@x.example/",
    "https://good.example\\@evil.example/",
    "https://good.example:443@evil.example/",
    "https://good.example#@evil.example/",
    "https://x.example:0443/",
    "https://x.example:+443/",
    "https://x.example:٤٤٣/",
    "https://x.example:/",
    "https://x.example:80/",
    "https://x.example:22/",
    "https://x.example:65536/",
    "https://x.example:443:443/",
    "https:/\\x.example/",
    "https:///x.example/",
    "https://",
    "https:x.example",
    "//x.example/",
    "x.example",
    "",
    "http://x.example/",
    "http://x.example:443/",
    "HTTPS://metadata.google.internal./",
    "https://x.example./",
    "https://%6c%6fcalhost/",
    "https://x%2eexample/",
    "https://ex\tample.com/",
    "https://x.example/\r\nhost: y",
    " https://x.example/",
    "https://x.example/ ",
    "https://x.example/a b",
    "https://x.example/\x00",
    "https://x.example/\x7f",
    "https://x.example/a\\b",
    "https://a..b/",
    "https://.x.example/",
    "https://-x.example/",
    "https://x-.example/",
    "https://x_y.example/",
    "https://x!.example/",
    "https://single/",
    f"https://{'a' * 64}.example/",
    f"https://{'a.' * 126}example/",
    "https://xn--a.example/",
    "https://xn--zzzz.example/",
    "https://a\u202eb.example/",
    "https://x.example/\ud800",
    "ftp://x.example/",
    "file:///etc/passwd",
    "gopher://x.example/",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "unix:/run/docker.sock",
]  # fmt: skip

INTERNAL_NAMES = [
    "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "arpa",
    "test", "invalid", "onion", "alt", "cluster.local", "svc", "metadata", "metadata.google.internal", "metadata.goog",
    "instance-data", "instance-data.ec2.internal", "metadata.azure.com", "metadata.azure.internal",
    "kubernetes.default",
]  # fmt: skip


@pytest.mark.parametrize("text", NEVER, ids=ascii)
def test_no_spelling_of_a_forbidden_address_is_accepted(text: str) -> None:
    with pytest.raises(InvalidRequest) as webhook:
        check_webhook_url(text)
    assert (webhook.value.param, webhook.value.status) == ("webhook_url", 400)
    if "#" not in text:
        with pytest.raises(InvalidRequest) as media:
            check_media_url(text, "image_url")
        assert media.value.param == "image_url"
        with pytest.raises(InvalidRequest):
            check_fetch_url(text)


@pytest.mark.parametrize("name", INTERNAL_NAMES)
def test_internal_names_and_everything_below_them_are_refused(name: str) -> None:
    for host in (name, f"api.{name}", f"a.b.{name}", f"api.{name}".upper()):
        with pytest.raises(InvalidRequest):
            check_webhook_url(f"https://{host}/")
    assert check_webhook_url(f"https://not{name}.example/")
    assert check_webhook_url(f"https://{name}.example/")


def test_every_refusal_of_one_field_reads_the_same() -> None:
    messages = set()
    for text in NEVER:
        with pytest.raises(InvalidRequest) as refusal:
            check_webhook_url(text)
        messages.add(refusal.value.message)
    assert messages == {"webhook_url must be an https:// address of a public domain name, on port 443 or 8443."}


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
def test_what_is_accepted_is_rebuilt(text: str, rebuilt: str) -> None:
    assert check_webhook_url(text) == rebuilt
    assert check_media_url(text, "image_url") == rebuilt
    assert check_fetch_url(text).url == rebuilt


def test_webhook_addresses_are_stricter_than_media_addresses() -> None:
    assert check_media_url("https://x.example/ü?ä#top", "image_url") == "https://x.example/%C3%BC?%C3%A4"
    for text in ("https://x.example/#", "https://x.example/ü", "https://x.example/?ü"):
        with pytest.raises(InvalidRequest):
            check_webhook_url(text)


def test_lengths() -> None:
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
def test_the_operator_may_open_hosts_and_blocks(text: str, rebuilt: str) -> None:
    assert check_webhook_url(text, LAB) == rebuilt
    assert check_media_url(text, "image_url", LAB) == rebuilt
    assert check_fetch_url(text, LAB).url == rebuilt
    with pytest.raises(InvalidRequest):
        check_fetch_url(text)


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_an_exception_opens_nothing_else(text: str) -> None:
    with pytest.raises(InvalidRequest):
        check_fetch_url(text, LAB)


def test_a_block_with_a_typing_error_is_reported_when_it_is_read() -> None:
    for block in ("127.0.0.1/8", "10.0.0.0/33", "localhost"):
        with pytest.raises(ValueError, match=block):
            Egress((block,))


# ------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255",
        "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.169.254", "172.16.0.0",
        "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.1", "192.88.99.1", "192.168.0.0",
        "192.168.255.255", "192.175.48.1", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:a00:1", "::ffff:0:7f00:1",
        "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "1fff:ffff::1", "2001::1", "2001:0:7f00:1::",
        "2001:1ff::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "3fff:fff::1", "4000::1",
        "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700::1111%1", "fec0::1", "ff02::1",
        "", "x.example", "127.1", "2130706433", "0177.0.0.1", "1.2.3.4/32", " 8.8.8.8",
    ],
)  # fmt: skip
def test_numbers_refused(address: str) -> None:
    assert is_refused(address)
    assert not guard.NO_EXCEPTIONS.permits("x.example", address)


@pytest.mark.parametrize(
    "address",
    [
        "1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255",
        "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
        "192.167.255.255", "192.169.0.0", "192.175.47.255", "192.175.49.0", "198.17.255.255", "198.20.0.0",
        "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "::ffff:8.8.8.8",
        "2000::", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2003::1",
        "2606:4700::1111", "3ffe:ffff::1", "3fff:1000::1", "3fff:ffff:ffff::1",
    ],
)  # fmt: skip
def test_numbers_just_outside_are_allowed(address: str) -> None:
    assert not is_refused(address)
    assert guard.NO_EXCEPTIONS.permits("x.example", address)


def test_this_machines_own_public_address_is_refused() -> None:
    assert guard.NO_EXCEPTIONS.permits("x.example", "8.8.8.8")
    assert not guard.NO_EXCEPTIONS.permits("x.example", "8.8.8.8", own=True)
    assert Egress(("8.8.8.8/32",)).permits("x.example", "8.8.8.8", own=True)


def test_exceptions_at_connect_time() -> None:
    assert LAB.permits("x.example", "127.0.0.1")
    assert LAB.permits("x.example", "::ffff:127.0.0.1")
    assert LAB.permits("minio.lan", "192.168.1.9")
    assert not LAB.permits("x.example", "192.168.1.9")
    assert not LAB.permits("x.example", "")


@given(st.ip_addresses(v=4))
def test_whatever_form_carries_an_ipv4_address_is_judged_like_it(address: ipaddress.IPv4Address) -> None:
    assert is_refused(f"::ffff:{address}") == is_refused(str(address))
    number = f"{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"
    for inside in (f"::{number}", f"64:ff9b::{number}", f"2002:{number}::", f"::ffff:0:{number}"):
        assert is_refused(inside)


@given(st.ip_addresses(v=6))
def test_nothing_outside_global_unicast_is_allowed(address: ipaddress.IPv6Address) -> None:
    if not address.ipv4_mapped and not is_refused(str(address)):
        assert int(address) >> 125 == 1


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


@given(_ANYTHING, st.sampled_from([guard.NO_EXCEPTIONS, LAB]))
@example("https://xn--.example/", guard.NO_EXCEPTIONS)
@example("https://x.example/?{}|`^\"<>'", guard.NO_EXCEPTIONS)
def test_the_parser_raises_one_error_and_another_parser_agrees_on_the_host(text: str, egress: Egress) -> None:
    checks: list[Callable[[], str]] = [
        lambda: check_webhook_url(text, egress),
        lambda: check_media_url(text, "image_url", egress),
        lambda: check_fetch_url(text, egress).url,
    ]
    for check in checks:
        try:
            rebuilt = check()
        except InvalidRequest:
            continue
        target = check_fetch_url(rebuilt, egress)
        other = Url(rebuilt)  # the parser of the HTTP client
        assert target.url == rebuilt
        assert rebuilt.isascii()
        assert (other.host_str or "").strip("[]") == target.host
        assert (other.scheme, other.port_or_known_default) == (target.scheme, target.port)
        assert not other.username
        assert other.password is None


@given(st.text(max_size=60))
def test_addresses_of_any_text_are_judged_without_an_error(text: str) -> None:
    assert is_refused(text) in (True, False)
    assert LAB.permits(text, text) in (True, False)
