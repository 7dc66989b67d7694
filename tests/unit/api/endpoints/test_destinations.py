"""Destinations over HTTP: for admins, each organization its own, and never with a key in the response."""

from pathlib import Path
from typing import Any

from penstock.clock import Clock
from penstock.media.bucket import Bucket
from tests.api.running import RunningGateway, running
from tests.s3_server import BUCKET, KEY_ID, SECRET, S3Server

# A signature has the time in it, which the server compares.
LOOPBACK: dict[str, Any] = {"egress_allow_cidrs": ("127.0.0.0/8",), "clock": Clock()}
OTHER_KEYS = {"access_key_id": "AKIACANARYCANARY0000", "secret_access_key": "canary-of-the-other-secret"}


def bucket_of(s3: S3Server, **options: Any) -> dict[str, Any]:
    keys = {"access_key_id": KEY_ID, "secret_access_key": SECRET}
    return {"url": s3.new_url(), "endpoint": s3.endpoint, **keys, **options}


async def call(here: RunningGateway, method: str, path: str, body: object = None, key: str = "") -> tuple[int, Any]:
    key = key or here.mine.admin.key
    response = await here.served.call(method, f"/v1/destinations{path}", key=key, body=body)
    for secret in (SECRET, OTHER_KEYS["secret_access_key"]):
        assert secret not in response.body.decode()
    return response.status, response.json if response.body else None


async def test_a_destination_is_checked_with_a_file_before_it_is_stored(tmp_path: Path, s3: S3Server) -> None:
    async with running(tmp_path, **LOOPBACK) as here:
        bucket = bucket_of(s3, name="archive")
        for bad in (OTHER_KEYS, {"url": "s3://missing"}, {"endpoint": "http://127.0.0.1:1"}):
            status, refused = await call(here, "POST", "", {**bucket, **bad})
            assert (status, refused["error"]["param"]) == (400, "url")
        status, added = await call(here, "POST", "", bucket)
        assert (status, added["url"], added["last_four"]) == (200, bucket["url"], "")
        assert added["check"] == {"works": True, "can_read": True, "can_delete": True, "message": None}
        assert [each["id"] for each in (await call(here, "GET", ""))[1]["data"]] == [added["id"]]
        assert await Bucket(f"s3://{BUCKET}", s3.options).list_files() == [], "the files of the checks are gone"
        path = f"/{added['id']}"
        status, refused = await call(here, "POST", f"{path}/rotate", OTHER_KEYS)  # keys that do not work
        assert (status, refused["error"]["param"]) == (400, "secret_access_key")
        keys = {name: bucket[name] for name in OTHER_KEYS}
        assert (await call(here, "POST", f"{path}/rotate", keys))[1]["version"] == 2
        changed = (await call(here, "PATCH", path, {"path": "{request_id}/{position}", "required": True}))[1]
        assert (changed["path"], changed["required"], changed["name"]) == ("{request_id}/{position}", True, "archive")
        assert (await call(here, "PATCH", path, {"path": None}))[1]["path"].startswith("{date}")
        assert (await call(here, "DELETE", path)) == (204, None)
        assert (await call(here, "DELETE", path))[0] == 404
        actions = [event["action"] for event in (await here.admin("GET", "/v1/audit")).json["data"]]
        told = [action.partition(".")[2] for action in actions if action.startswith("destination.")]
        assert sorted(told) == ["added", "changed", "changed", "deleted", "rotated"]


async def test_bad_fields_are_named(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        good = {"url": "s3://media", **OTHER_KEYS}
        for bad, param in (
            ({"url": None}, "url"),
            ({"url": "https://media"}, "url"),
            ({"endpoint": "https://169.254.169.254"}, "endpoint"),
            ({"region": "a/b"}, "region"),
            ({"path": "{position}"}, "path"),
            ({"access_key_id": "a b"}, "access_key_id"),
            ({"secret_access_key": None}, "secret_access_key"),
            ({"name": "a\nb"}, "name"),
            ({"default": 1}, "default"),
            ({"bucket": "media"}, "bucket"),
        ):
            status, refused = await call(here, "POST", "", {**good, **bad})
            assert (status, refused["error"]["param"]) == (400, param)


async def test_organizations_see_and_use_only_their_own(tmp_path: Path, s3: S3Server) -> None:
    """Both may name one bucket: the keys say whose it is."""
    async with running(tmp_path, **LOOPBACK) as here:
        bucket = bucket_of(s3, default=True)
        mine = (await call(here, "POST", "", bucket))[1]
        theirs = (await call(here, "POST", "", bucket, here.theirs.admin.key))[1]
        [seen] = (await call(here, "GET", "", key=here.theirs.admin.key))[1]["data"]
        assert seen["id"] == theirs["id"] != mine["id"]
        path = f"/{mine['id']}"
        keys = {name: bucket[name] for name in OTHER_KEYS}
        for method, where, body in (
            ("PATCH", path, {"required": True}),
            ("POST", f"{path}/rotate", keys),
            ("POST", f"{path}/check", None),
            ("DELETE", path, None),
        ):
            assert (await call(here, method, where, body, here.theirs.admin.key))[0] == 404
            assert (await call(here, method, where, body, here.mine.plain.key))[0] == 403
        assert (await call(here, "GET", "", key=here.mine.plain.key))[0] == 403
        for org_id, expected in ((here.mine.org_id, mine), (here.theirs.org_id, theirs)):
            found = here.gateway.destinations.default_of(org_id)
            assert found is not None
            assert found.id == expected["id"]


async def test_an_organization_has_one_default_and_twenty_destinations_at_most(tmp_path: Path, s3: S3Server) -> None:
    async with running(tmp_path, **LOOPBACK) as here:
        bucket = bucket_of(s3, default=True)
        added = [(await call(here, "POST", "", bucket))[1]["id"] for _ in range(20)]
        assert (await call(here, "POST", "", bucket))[0] == 409

        async def defaults() -> list[str]:
            return [each["id"] for each in (await call(here, "GET", ""))[1]["data"] if each["default"]]

        assert await defaults() == [added[-1]]
        await call(here, "PATCH", f"/{added[0]}", {"default": True})
        assert await defaults() == [added[0]]
        await call(here, "PATCH", f"/{added[0]}", {"default": None})
        assert await defaults() == []


async def test_a_check_tells_what_is_wrong_now(tmp_path: Path, s3: S3Server) -> None:
    async with running(tmp_path, **LOOPBACK) as here:
        added = (await call(here, "POST", "", bucket_of(s3)))[1]
        path = f"/{added['id']}/check"
        assert (await call(here, "POST", path))[1]["failure"] is None
        destinations = here.gateway.destinations
        found = destinations.get(here.mine.org_id, added["id"])
        await destinations.note_result(found, "the bucket answered with status 503")
        assert destinations.list_records(here.mine.org_id)[0]["failure"] == "the bucket answered with status 503"
        assert (await call(here, "POST", path))[1]["failure"] is None, "it works again"
