"""People over HTTP: admins give roles in their organization, operators everywhere."""

from pathlib import Path

from penstock.people.configured import RoleRule
from penstock.people.oidc import Identity
from tests.api.running import RunningGateway, running

RULES = (RoleRule(role="member", org="Other", group="media"),)


async def add_person(here: RunningGateway) -> str:
    """A member of the other organization; returns the id."""
    identity = Identity("https://issuer.example", "anna", "anna@studio.example", True, None, frozenset({"media"}))
    return str((await here.gateway.users.enter(identity, RULES, None)).user_id)


async def test_admins_change_people_of_their_organization_only(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        path = f"/v1/users/{await add_person(here)}"
        theirs = here.theirs.admin.key
        [person] = (await here.served.call("GET", "/v1/users", key=theirs)).json["data"]
        assert person["roles"] == [{"org_id": here.theirs.org_id, "role": "member", "source": "groups"}]
        changed = await here.served.call("PATCH", path, key=theirs, body={"role": "viewer"})
        assert changed.json["roles"][0]["role"] == "viewer"
        for body in ({"role": "operator", "org_id": "*"}, {"status": "deactivated"}, {"role": "admin", "org_id": "*"}):
            assert (await here.served.call("PATCH", path, key=theirs, body=body)).status == 403
        for wrong in ({}, {"role": "boss"}, {"more": "x"}):
            assert (await here.served.call("PATCH", path, key=theirs, body=wrong)).status == 400
        assert (await here.served.call("GET", "/v1/users", key=here.theirs.plain.key)).status == 403
        mine = await here.gateway.keys.create_key(here.mine.org_id, scopes=["admin"])
        assert (await here.served.call("GET", "/v1/users", key=mine.key)).json["data"] == []
        assert (await here.served.call("PATCH", path, key=mine.key, body={"role": "admin"})).status == 404


async def test_operators_change_everybody(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        path = f"/v1/users/{await add_person(here)}"
        given = await here.admin("PATCH", path, {"role": "operator", "org_id": "*"})
        assert {role["role"] for role in given.json["roles"]} == {"member", "operator"}
        taken = await here.admin("PATCH", path, {"role": None, "org_id": "*"})
        assert [role["role"] for role in taken.json["roles"]] == ["member"]
        assert (await here.admin("PATCH", path, {"status": "deactivated"})).json["status"] == "deactivated"
        assert (await here.admin("PATCH", "/v1/users/user_x", {"role": "admin"})).status == 404
        events = (await here.admin("GET", f"/v1/audit?target={path.rpartition('/')[2]}")).json["data"]
        assert [event["action"] for event in events][:3] == ["user.changed", "role.changed", "role.changed"]
