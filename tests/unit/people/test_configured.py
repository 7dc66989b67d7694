"""A table `oidc` that cannot work is refused with the sentence that says why."""

from typing import Any

import pytest

from penstock.people.configured import read_oidc
from penstock.typed_config import Misconfigured

TABLE = {"issuer": "https://issuer.example", "client_id": "penstock"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": "http://issuer.example"}, "https"),
        ({"issuer": "issuer.example"}, "issuer"),
        ({"client": "x"}, "client"),
        ({"roles": [{"role": "boss", "org": "a", "group": "b"}]}, "role"),
        ({"roles": [{"role": "admin", "org": "*", "group": "b"}]}, "operator"),
        ({"roles": [{"role": "operator", "org": "a", "group": "b"}]}, "operator"),
        ({"roles": [{"role": "admin", "org": "a"}]}, "`group` or `email`"),
        ({"roles": [{"role": "admin", "org": "a", "group": "b", "email": "a@b.example"}]}, "one of them"),
        ({"roles": [{"role": "admin", "org": "a", "email": "studio.example"}]}, "email"),
        ({"roles": [{"role": "admin", "org": "a", "email": "a*@b.example"}]}, "email"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Misconfigured, match=reason):
        read_oidc({**TABLE, **changes}, "https://media.example")


def test_people_need_an_address_to_come_back_to() -> None:
    for url in ("", "http://media.example"):
        with pytest.raises(Misconfigured, match="public_url"):
            read_oidc(TABLE, url)
    assert read_oidc(TABLE, "http://127.0.0.1:8080") is not None
    assert read_oidc({}, "") is None
