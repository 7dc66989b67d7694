"""Errors: status, type and code of each, and whether the call may be repeated."""

import pytest

from penstock.accounts.orgs import create_org
from tests.api.http_calls import ServedApi, checked_json, form, served_api
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


async def refused(api: ServedApi, code: str, status: int, kind: str, **more: object) -> None:
    response = await api.image(**more)
    problem = checked_json("Error", response, status)["error"]
    assert (problem["code"], problem["type"]) == (code, kind)


async def test_unknown_models(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        await refused(api, "MODEL_NOT_FOUND", 404, "invalid_request_error", model="imag-1")
        response = await api.call("GET", "/compat/v1/models/imag-1")
        problem = checked_json("Error", response, 404)["error"]
        assert (problem["code"], problem["type"]) == ("MODEL_NOT_FOUND", "invalid_request_error")
        assert "`image-1`" in problem["message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 0),
        ("n", 11),
        ("size", "huge"),
        ("thinking", "hard"),
        ("webhook_url", "http://127.0.0.1/"),
        ("output_compression", 101),
        ("prompt", ""),
        ("media_retention", "1y"),
    ],
)
async def test_the_message_about_a_bad_field_names_it(open_gateway: OpenGateway, field: str, value: object) -> None:
    async with served_api(open_gateway) as api:
        response = await api.image(**{field: value})
        problem = checked_json("Error", response, 400)["error"]
        assert (problem["code"], problem["param"]) == ("INVALID_REQUEST", field)
        assert response.headers["x-should-retry"] == "false"
        assert api.running.lab.submits == 0


async def test_an_insufficient_balance_is_a_402(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, starting_credit_usd="0.05") as api:
        checked_json("ImageResult", await api.image())
        response = await api.image()
        problem = checked_json("Error", response, 402)["error"]
        assert (problem["code"], problem["type"]) == ("INSUFFICIENT_BALANCE", "insufficient_quota")
        assert response.headers["x-should-retry"] == "false"
        assert api.running.lab.submits == 1


async def test_providers_that_fail(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.images.always(faults.broken)
        response = await api.image()
        problem = checked_json("Error", response, 502)["error"]
        assert (problem["code"], problem["type"]) == ("ALL_PROVIDERS_EXHAUSTED", "api_error")
        assert response.headers["x-should-retry"] in ("true", "false")
        record = await api.running.record(response.headers["x-request-id"])
        assert (record["status"], record["error_code"], record["cost"]) == (
            "upstream_failure",
            "ALL_PROVIDERS_EXHAUSTED",
            0,
        )


async def test_a_call_whose_outcome_is_unknown_is_not_to_be_repeated(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, audited=False) as api:
        api.running.lab.images.always(faults.dropped)
        response = await api.image()
        assert response.status in (502, 504)
        assert response.headers["x-should-retry"] == "false"


async def test_ids_of_other_organizations_are_not_found(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        made = checked_json("VideoCreated", await api.video(), 202)
        await api.running.wait_for_request(made["id"])
        org = await create_org(api.running.gateway.store, api.running.clock, "Other", "prepaid")
        other = (await api.running.gateway.keys.create_key(org.id, scopes=["admin"])).key
        never = made["id"][:-4] + "0000"
        for method, path in (
            ("GET", "/compat/v1/videos/{}"),
            ("GET", "/compat/v1/videos/{}/content"),
            ("DELETE", "/compat/v1/videos/{}"),
            ("GET", "/compat/v1/videos?after={}"),
            ("GET", "/compat/v1/images/{}"),
            ("GET", "/v1/requests/{}"),
            ("DELETE", "/v1/requests/{}/payloads"),
            ("GET", "/v1/requests?starting_after={}"),
            ("GET", "/v1/requests?ending_before={}"),
        ):
            foreign = await api.call(method, path.format(made["id"]), key=other)
            missing = await api.call(method, path.format(never), key=other)
            assert (foreign.status, foreign.code) == (404, "NOT_FOUND"), path
            assert foreign.body.replace(made["id"].encode(), b"") == missing.body.replace(never.encode(), b"")
            names = set(foreign.headers) - {"content-length"}
            assert names == set(missing.headers) - {"content-length"}


async def test_a_running_request_cannot_be_purged(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        api.running.lab.states = ("queued",) * 1000
        made = checked_json("VideoCreated", await api.video(), 202)
        response = await api.call("DELETE", f"/v1/requests/{made['id']}/payloads")
        assert checked_json("Error", response, 409)["error"]["code"] == "CONFLICT"
        await api.call("DELETE", f"/compat/v1/videos/{made['id']}")
        await api.running.wait_for_request(made["id"])


async def test_extra_fields_do_not_change_internal_fields(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway, audited=False) as api:
        response = await api.image(
            org_id="org_x", cost=0, status="completed", key_id="key_x", created_at=0, balance=10**9
        )
        record = await api.running.record(response.headers["x-request-id"])
        assert record["key_id"] == api.running.caller.key_id
        assert record["created_at"] != "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "parts",
    [
        [("input_reference[999999999]", png(16, 16), "a.png")],
        [("prompt", b"again", None)],
        [("metadata", b"[" * 100_000, None)],
        [("n", b"9" * 5000, None)],
        [("seconds", b"1e999", None)],
        [("input_reference", b"not an image", "../../etc/passwd")],
    ],
    ids=["far index", "twice", "deep", "long number", "infinite", "no image"],
)
async def test_malformed_forms_are_a_400(open_gateway: OpenGateway, parts: list[tuple[str, bytes, str | None]]) -> None:
    async with served_api(open_gateway) as api:
        body, headers = form(("model", b"video-1", None), ("prompt", b"a train", None), *parts)
        response = await api.call("POST", "/compat/v1/videos", body, headers=headers)
        assert checked_json("Error", response, 400)["error"]["code"] == "INVALID_REQUEST"
        assert api.running.lab.submits == 0
