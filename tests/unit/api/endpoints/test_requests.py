"""Request records over HTTP."""

import re
from pathlib import Path

import pytest

from penstock.api.routes import ROUTES
from penstock.values import new_id
from tests.api.running import ids, running


async def test_requests_are_listed_newest_first_and_paged_by_urls(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(5)
        await here.refused(2, here.theirs)
        assert ids(await here.get("/v1/requests")) == made

        first = await here.get("/v1/requests?limit=2&status=rejected")
        assert ids(first) == made[:2]
        assert first.json["previous_page_url"] is None
        assert first.json["next_page_url"] == f"/v1/requests?limit=2&status=rejected&starting_after={made[1]}"
        second = await here.get(first.json["next_page_url"])
        assert ids(second) == made[2:4]
        last = await here.get(second.json["next_page_url"])
        assert (ids(last), last.json["next_page_url"]) == (made[4:], None)
        back = await here.get(last.json["previous_page_url"])
        assert ids(back) == made[2:4]
        start = await here.get(back.json["previous_page_url"])
        assert (ids(start), start.json["previous_page_url"]) == (made[:2], None)


async def test_requests_are_filtered(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(3)
        second = (await here.get(f"/v1/requests/{made[1]}")).json["created_at"]
        assert ids(await here.get(f"/v1/requests?created_after={second}")) == made[:2]
        assert ids(await here.get(f"/v1/requests?created_before={second}")) == made[1:]
        assert ids(await here.get(f"/v1/requests?created_after={second}&created_before={second}")) == [made[1]]
        assert ids(await here.get("/v1/requests?status=completed")) == []
        assert ids(await here.get(f"/v1/requests?key_id={here.mine.plain.id}")) == made
        assert ids(await here.get(f"/v1/requests?key_id={here.mine.admin.id}")) == []
        assert ids(await here.get("/v1/requests?key_id=%25")) == []


async def test_a_summary_counts_all_matching_requests(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await here.refused(3)
        response = await here.get("/v1/requests?limit=1&summary=true")
        assert response.json["summary"] == {"total_cost": 0, "currency": "usd", "count": 3}
        assert "summary=true" in response.json["next_page_url"]
        assert "summary" not in (await here.get("/v1/requests")).json
        assert "summary" not in (await here.get("/v1/requests?summary=false")).json


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("status=done", "status"),
        ("summary=1", "summary"),
        ("created_after=yesterday", "created_after"),
        ("created_before=soon", "created_before"),
        ("model_name=x", "model_name"),
        ("limit=1&limit=2", "limit"),
    ],
)
async def test_the_message_about_a_bad_parameter_names_it(tmp_path: Path, query: str, param: str) -> None:
    async with running(tmp_path) as here:
        response = await here.get(f"/v1/requests?{query}")
        assert (response.status, response.code, response.json["error"]["param"]) == (400, "INVALID_REQUEST", param)


async def test_both_cursors_together_are_a_400(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [made] = await here.refused(1)
        for path in (
            f"/v1/requests?starting_after={made}&ending_before={made}",
            "/v1/keys?starting_after=x&ending_before=y",
        ):
            response = await here.get(path)
            assert (response.status, response.code) == (400, "INVALID_REQUEST")
            assert "cannot be combined" in response.json["error"]["message"]


async def test_ids_of_other_organizations_are_not_found(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [theirs] = await here.refused(1, here.theirs)
        never, key = new_id("req", 1), here.theirs.plain.id
        never_key = new_id("key", 1)
        for foreign, missing, path in (
            (theirs, never, "/v1/requests/{}"),
            (theirs, never, "/v1/requests?starting_after={}"),
            (theirs, never, "/v1/requests?ending_before={}"),
            (theirs, never, "/compat/v1/videos/{}"),
            (theirs, never, "/compat/v1/images/{}"),
            (key, never_key, "/v1/keys?starting_after={}"),
            (key, never_key, "/v1/keys?ending_before={}"),
            (theirs, "req_x", "/v1/requests/{}"),
            (theirs, "%C3%A9", "/v1/requests/{}"),
        ):
            one, other = await here.get(path.format(foreign)), await here.get(path.format(missing))
            assert (one.status, one.code) == (404, "NOT_FOUND"), path
            assert one.status == other.status
            assert one.body.replace(foreign.encode(), b"ID") == other.body.replace(
                missing.replace("%C3%A9", "é").encode(), b"ID"
            )
        assert ids(await here.get(f"/v1/requests?key_id={key}")) == []


async def test_a_request_is_retrieved(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [made] = await here.refused(1)
        response = await here.get(f"/v1/requests/{made}")
        assert (response.json["id"], response.json["object"], response.json["status"]) == (made, "request", "rejected")
        assert response.json["created_at"] == "2023-11-14T22:13:22.000Z"


# ------------------------------------------------------------------------------------------------------------- filters


async def test_an_unknown_query_parameter_is_refused_by_name(tmp_path: Path) -> None:
    """On every path of the native API; a client of another API may add its own parameters to the compatible one."""
    async with running(tmp_path) as here:
        for route in ROUTES:
            if not route.path.startswith("/v1/") or route.method != "GET":
                continue
            path = re.sub(r"{.*?}", "x", route.path)
            response = await here.served.call("GET", f"{path}?modell=x", key=here.mine.admin.key)
            if response.status == 403:  # needs another scope; nothing is read before that is known
                continue
            assert (response.status, response.json["error"]["param"]) == (400, "modell"), route.path
            assert all(f"`{row.name}`" in response.json["error"]["message"] for row in route.query), route.path
        assert (await here.get("/compat/v1/models?api-version=1")).status == 200


async def test_an_unchanged_list_is_not_sent_again(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        [made] = await here.refused(1)
        for path in ("/v1/requests", f"/v1/requests/{made}", "/v1/requests?summary=true"):
            first = await here.get(path)
            tag = first.headers["etag"]
            again = await here.served.call("GET", path, key=here.mine.plain.key, headers={"if-none-match": tag})
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
            other = await here.served.call("GET", path, key=here.theirs.plain.key, headers={"if-none-match": tag})
            assert other.status in (200, 404)
        tag = (await here.get("/v1/requests")).headers["etag"]
        await here.refused(1)
        changed = await here.served.call("GET", "/v1/requests", key=here.mine.plain.key, headers={"if-none-match": tag})
        assert (changed.status, len(changed.json["data"])) == (200, 2)


async def test_a_wrong_method_is_refused_before_its_query(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for path in ("/v1/requests?limit=20", "/v1/usage?modell=x", "/v1/keys?limit=1"):
            assert (await here.served.call("PUT", path, key=here.mine.plain.key)).status == 405, path
