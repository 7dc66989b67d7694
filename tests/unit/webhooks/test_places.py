"""A host and an organization occupy only some of the places, and fewer places are allowed during a shortage."""

import pytest

from penstock.values import OrgId
from penstock.webhooks import places
from penstock.webhooks.delivery import LeasedMessage
from penstock.webhooks.places import DeliveryPlaces

ORG = OrgId("org_1")
OTHER_ORG = OrgId("org_2")


def message(host: str, org_id: OrgId = ORG) -> LeasedMessage:
    return LeasedMessage("msg_1", org_id, f"https://{host}/in", b"{}", 0, 1)


def test_a_host_has_room_again_when_one_of_its_messages_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_PER_HOST", 2)
    calls: list[str] = []
    found = DeliveryPlaces(lambda: calls.append("room"))
    most = found.free
    taken = []
    for _ in range(2):
        assert found.has_room(message("a.test"))
        taken.append(found.take(message("a.test")))
    assert (found.has_room(message("a.test")), found.has_room(message("b.test"))) == (False, True)
    assert (found.busy_hosts, found.are_crowded) == (["a.test"], True)
    taken[0].end_sending()
    assert calls == ["room"]
    assert found.has_room(message("a.test"))
    taken[1].end_sending()
    assert calls == ["room"], "nobody waited"
    assert not found.are_crowded
    assert found.free == most - 2, "until the results are recorded"
    for place in taken:
        place.give_back()
    assert (found.free, found.has_room(message("a.test")), calls) == (most, True, ["room"])


def test_an_organization_occupies_as_many_places_as_are_left_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_MOST", 6)
    found = DeliveryPlaces(lambda: None)
    for number in range(3):
        assert found.has_room(message(f"h{number}.test"))
        found.take(message(f"h{number}.test"))
    assert (found.free, found.busy_orgs) == (3, [ORG])
    assert not found.has_room(message("h4.test"))
    assert found.has_room(message("h4.test", OTHER_ORG))
    for number in range(3):
        found.take(message("h4.test", OrgId(f"org_{number + 2}")))
    assert not found.has_room(message("h4.test", OrgId("org_9"))), "no place is left"


def test_fewer_places_during_a_shortage() -> None:
    found = DeliveryPlaces(lambda: None)
    most = found.free
    for _ in range(20):
        found.halve()
    assert found.free == 8
    for _ in range(most):
        found.add_one()
    assert found.free == most
