"""Whose connection it is, with and without proxies."""

import pytest

from penstock.http_server.addresses import Proxies, address_group, host_and_port

PROXIES = Proxies(["192.0.2.1", "198.51.100.0/24", "2001:db8::1"])


@pytest.mark.parametrize(
    ("host", "is_trusted"),
    [
        ("192.0.2.1", True),
        ("192.0.2.2", False),
        ("198.51.100.77", True),
        ("2001:0db8::0001", True),
        ("proxy.test", False),
        ("other.test", False),
        ("127.0.0.1", False),
        ("", False),
    ],
)
def test_only_named_proxies_are_trusted(host: str, is_trusted: bool) -> None:
    assert PROXIES.trust(host) is is_trusted
    assert not Proxies([]).trust(host)
    assert Proxies(["*"]).trust(host)


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("1.1.1.1, 203.0.113.9", "203.0.113.9"),  # what the client itself sent does not count
        ("203.0.113.9, 198.51.100.3", "203.0.113.9"),
        ("[2001:db8:1::7]:443, 192.0.2.1", "2001:db8:1::7"),
        ("192.0.2.1", "192.0.2.1"),
        ("", ""),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(forwarded: str, client: str) -> None:
    assert PROXIES.client(forwarded) == client


@pytest.mark.parametrize(
    ("host", "group"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("no address" * 20, ("no address" * 20)[:64]),
    ],
)
def test_addresses_of_one_network_count_as_one(host: str, group: str) -> None:
    assert address_group(host) == group


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (("192.0.2.1", 80), ("192.0.2.1", 80)),
        (("2001:db8::1", 443, 0, 0), ("2001:db8::1", 443)),
        ("/run/penstock.sock", None),
        ("", None),
        (None, None),
    ],
)
def test_the_address_of_a_socket_is_in_its_name(name: object, found: object) -> None:
    assert host_and_port(name) == found
