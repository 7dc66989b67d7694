"""Which IP addresses may be connected to: one table, the same on every version of Python."""

import ipaddress
import socket

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.net.addresses import ipv6_text, is_blocked, is_own_address, parse_address
from penstock.net.checked_urls import NO_EXCEPTIONS, EgressRules

# Each line: a special network, addresses inside that are blocked, and the nearest addresses outside that are allowed.
EXPECTED = [
    ("0.0.0.0/8", "0.0.0.0 0.0.0.1 0.255.255.255", "1.0.0.0"),
    ("10.0.0.0/8", "10.0.0.0 10.0.0.1 10.255.255.255", "9.255.255.255 11.0.0.0"),
    ("100.64.0.0/10", "100.64.0.0 100.100.100.200 100.127.255.255", "100.63.255.255 100.128.0.0"),
    ("127.0.0.0/8", "127.0.0.0 127.0.0.1 127.255.255.255", "126.255.255.255 128.0.0.0"),
    ("168.63.129.16/32", "168.63.129.16", "168.63.129.15 168.63.129.17"),
    ("169.254.0.0/16", "169.254.0.0 169.254.169.254 169.254.255.255", "169.253.255.255 169.255.0.0"),
    ("172.16.0.0/12", "172.16.0.0 172.31.255.255", "172.15.255.255 172.32.0.0"),
    ("192.0.0.0/24", "192.0.0.0 192.0.0.192 192.0.0.255", "191.255.255.255 192.0.1.0"),
    ("192.0.2.0/24", "192.0.2.0 192.0.2.255", "192.0.1.255 192.0.3.0"),
    ("192.31.196.0/24", "192.31.196.0 192.31.196.255", "192.31.195.255 192.31.197.0"),
    ("192.52.193.0/24", "192.52.193.0 192.52.193.255", "192.52.192.255 192.52.194.0"),
    ("192.88.99.0/24", "192.88.99.0 192.88.99.255", "192.88.98.255 192.88.100.0"),
    ("192.168.0.0/16", "192.168.0.0 192.168.255.255", "192.167.255.255 192.169.0.0"),
    ("192.175.48.0/24", "192.175.48.0 192.175.48.255", "192.175.47.255 192.175.49.0"),
    ("198.18.0.0/15", "198.18.0.0 198.19.255.255", "198.17.255.255 198.20.0.0"),
    ("198.51.100.0/24", "198.51.100.0 198.51.100.255", "198.51.99.255 198.51.101.0"),
    ("203.0.113.0/24", "203.0.113.0 203.0.113.255", "203.0.112.255 203.0.114.0"),
    ("224.0.0.0/4", "224.0.0.0 224.0.0.1 239.255.255.255", "223.255.255.255"),
    ("240.0.0.0/4", "240.0.0.0 255.255.255.254 255.255.255.255", ""),
    ("public IPv4", "", "8.8.8.8 1.1.1.1 93.184.215.14"),
    ("IPv4-mapped", "::ffff:127.0.0.1 ::ffff:a00:1 ::ffff:0.0.0.0 ::ffff:c0a8:101", "::ffff:8.8.8.8 ::ffff:808:808"),
    ("IPv4-compatible", "::8.8.8.8 ::127.0.0.1 ::ffff", ""),
    ("IPv4-translated", "::ffff:0:7f00:1 ::ffff:0:808:808", ""),
    ("NAT64", "64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 64:ff9b:1:ffff::808:808", ""),
    ("Teredo", "2001::1 2001:0:7f00:1:: 2001:0:ffff:ffff::", ""),
    ("6to4", "2002:: 2002:7f00:1:: 2002:808:808::1 2002:ffff:ffff:ffff::", "2003::"),
    ("unspecified and loopback", ":: ::1", ""),
    ("discard-only and dummy prefix", "100::1 100:0:0:1::1", ""),
    ("protocol assignments", "2001:1::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::", "2000::1 2001:200::"),
    ("documentation", "2001:db8:: 2001:db8:ffff::", "2001:db7:ffff:: 2001:db9::"),
    ("AS112", "2620:4f:8000:: 2620:4f:8000:ffff::", "2620:4f:7fff:: 2620:4f:8001::"),
    ("documentation, newer", "3fff:: 3fff:fff:ffff::", "3ffe:ffff:: 3fff:1000:: 3fff:ffff:ffff::"),
    ("outside global unicast", "1fff:ffff:: 4000:: 5f00::1 8000::1", "2000::"),
    ("unique local", "fc00::1 fd00:ec2::254 fdff:ffff::", ""),
    ("link-local and site-local", "fe80::1 febf:ffff:: fec0::1 feff::1", ""),
    ("multicast", "ff02::1 ff0e::1", ""),
    ("with a scope id", "fe80::1%eth0 2606:4700::1111%1 ::ffff:8.8.8.8%1", ""),
    ("public IPv6", "", "2606:4700::1111 2001:4860:4860::8888 2a00:1450::1"),
    ("no IP address", "x.example 127.1 2130706433 0177.0.0.1 1.2.3.4/32 0x7f.0.0.1 8.8.8.8. ::ffff:8.8.8.300", ""),
]


def test_each_special_network_is_blocked_exactly_to_its_borders() -> None:
    wrong = [
        f"{name}: {address} is {'blocked' if is_blocked(address) else 'allowed'}"
        for name, blocked, allowed in EXPECTED
        for addresses, expected in ((blocked, True), (allowed, False))
        for address in addresses.split()
        if is_blocked(address) != expected or NO_EXCEPTIONS.permits("x.example", address) == expected
    ]
    assert not wrong, "\n".join(wrong)


def test_empty_text_and_spaces_are_no_ip_address() -> None:
    for text in ("", " 8.8.8.8", "8.8.8.8 ", "8.8.8.8\n"):
        assert is_blocked(text), repr(text)
        assert parse_address(text) is None, repr(text)


@given(st.ip_addresses(v=4))
def test_every_form_that_carries_an_ipv4_address_is_judged_like_it_or_blocked(address: ipaddress.IPv4Address) -> None:
    assert is_blocked(f"::ffff:{address}") == is_blocked(str(address))
    assert parse_address(f"::ffff:{address}") == address
    number = f"{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"
    for embedding in (f"::{number}", f"64:ff9b::{number}", f"2002:{number}::", f"::ffff:0:{number}"):
        assert is_blocked(embedding)


@given(st.ip_addresses(v=6))
def test_nothing_outside_global_unicast_is_allowed(address: ipaddress.IPv6Address) -> None:
    if int(address) >> 32 != 0xFFFF and not is_blocked(str(address)):
        assert int(address) >> 125 == 1


@given(st.text(max_size=60))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert is_blocked(text) in (True, False)
    assert EgressRules(("127.0.0.0/8", "::1/128"), ("printer",)).permits(text, text) in (True, False)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("::", "::"),
        ("::1", "::1"),
        ("1::", "1::"),
        ("::ffff:127.0.0.1", "::ffff:7f00:1"),
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
    ],
)
def test_ipv6_addresses_are_written_alike_on_every_python(text: str, written: str) -> None:
    assert ipv6_text(ipaddress.IPv6Address(text)) == written


@given(st.ip_addresses(v=6))
def test_ipv6_addresses_are_written_so_that_they_are_read_back(address: ipaddress.IPv6Address) -> None:
    assert ipaddress.IPv6Address(ipv6_text(address)) == address


@pytest.mark.allow_hosts(["0.0.0.0/0", "::/0"])  # only the route is looked up; nothing is sent
def test_the_addresses_of_this_machine_are_recognised() -> None:
    interfaces = psutil.net_if_addrs().values()
    own = {
        entry.address for found in interfaces for entry in found if entry.family in (socket.AF_INET, socket.AF_INET6)
    }
    assert "127.0.0.1" in own
    assert [address for address in own if "%" not in address and not is_own_address(address)] == []
    assert [address for address in ("192.0.2.77", "8.8.8.8", "2001:4860::1") if is_own_address(address)] == []
