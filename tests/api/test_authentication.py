"""The interface's authentication: one key for both APIs, shown once, gone when revoked, and nothing without it."""

from tests.api.http_calls import shaped, visiting
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


async def test_one_key_works_for_compatible_and_native_paths(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        for path in ("/compat/v1/models", "/compat/v1/videos", "/v1/requests", "/v1/keys", "/v1/balance"):
            assert (await visit.ask("GET", path)).status == 200
            said = await visit.served.ask("GET", path)
            problem = shaped("Error", said, 401)["error"]
            assert (problem["code"], problem["type"]) == ("AUTHENTICATION_FAILED", "authentication_error")


async def test_request_records_have_the_id_of_their_key(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        new = shaped("NewKey", await visit.ask("POST", "/v1/keys", {"name": "second"}))
        wish = {"model": "picture", "prompt": "x", "size": "64x64"}
        made = await visit.ask("POST", "/compat/v1/images/generations", wish, key=new["key"])
        record = shaped("Request", await visit.ask("GET", f"/v1/requests/{shaped('ImageResult', made)['id']}"))
        assert record["key_id"] == new["id"]
        listed = await visit.ask("GET", f"/v1/requests?key_id={new['id']}")
        assert [one["id"] for one in shaped("RequestList", listed)["data"]] == [record["id"]]


async def test_a_revoked_key_is_refused_and_its_running_videos_go_on(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        new = shaped("NewKey", await visit.ask("POST", "/v1/keys", {}))
        wish = {"model": "film", "prompt": "x", "seconds": 4}
        video = shaped("VideoCreated", await visit.ask("POST", "/compat/v1/videos", wish, key=new["key"]), 202)
        await visit.ask("DELETE", f"/v1/keys/{new['id']}")
        assert (await visit.ask("GET", "/v1/balance", key=new["key"])).status == 401
        assert (await visit.running.ended(video["id"]))["status"] == "completed"


async def test_no_list_contains_a_whole_key(open_gateway: OpenGateway) -> None:
    async with visiting(open_gateway) as visit:
        shaped("ImageResult", await visit.image())
        for path in ("/v1/keys", "/v1/requests", "/v1/balance", "/compat/v1/models"):
            assert visit.running.key not in (await visit.ask("GET", path)).body.decode()
