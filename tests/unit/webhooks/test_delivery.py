"""A message knows the host that it goes to, by which deliveries are counted."""

from penstock.values import OrgId
from penstock.webhooks.delivery import LeasedMessage


def test_the_host_is_the_part_of_the_url_before_the_path_with_its_port() -> None:
    for url, host in (
        ("https://hooks.example.com/in?x=/y", "hooks.example.com"),
        ("https://hooks.example.com:8443/", "hooks.example.com:8443"),
    ):
        assert LeasedMessage("msg_1", OrgId("org_1"), url, b"", 0, 1).host == host
