"""Authentication: one key for both APIs, shown once, refused when revoked."""

from tests.api.http_calls import checked_json, served_api
from tests.gateway import OpenGateway, sqlite_only

pytestmark = sqlite_only


async def test_one_key_works_for_compatible_and_native_paths(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        for path in ("/compat/v1/models", "/compat/v1/videos", "/v1/requests", "/v1/keys", "/v1/balance"):
            assert (await api.call("GET", path)).status == 200
            response = await api.served.call("GET", path)
            problem = checked_json("Error", response, 401)["error"]
            assert (problem["code"], problem["type"]) == ("AUTHENTICATION_FAILED", "authentication_error")


async def test_request_records_have_the_id_of_their_key(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        new = checked_json("NewKey", await api.call("POST", "/v1/keys", {"name": "second"}))
        body = {"model": "image-1", "prompt": "x", "size": "64x64"}
        made = await api.call("POST", "/compat/v1/images/generations", body, key=new["key"])
        record = checked_json(
            "Request", await api.call("GET", f"/v1/requests/{checked_json('ImageResult', made)['id']}")
        )
        assert record["key_id"] == new["id"]
        listed = await api.call("GET", f"/v1/requests?key_id={new['id']}")
        assert [request["id"] for request in checked_json("RequestList", listed)["data"]] == [record["id"]]


async def test_a_revoked_key_is_refused_and_its_running_videos_go_on(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        new = checked_json("NewKey", await api.call("POST", "/v1/keys", {}))
        body = {"model": "video-1", "prompt": "x", "seconds": 4}
        video = checked_json("VideoCreated", await api.call("POST", "/compat/v1/videos", body, key=new["key"]), 202)
        await api.call("DELETE", f"/v1/keys/{new['id']}")
        assert (await api.call("GET", "/v1/balance", key=new["key"])).status == 401
        assert (await api.running.wait_for_request(video["id"]))["status"] == "completed"


async def test_no_list_contains_a_whole_key(open_gateway: OpenGateway) -> None:
    async with served_api(open_gateway) as api:
        checked_json("ImageResult", await api.image())
        for path in ("/v1/keys", "/v1/requests", "/v1/balance", "/compat/v1/models"):
            assert api.running.key not in (await api.call("GET", path)).body.decode()


async def test_the_lists_of_voices_need_no_key_only_where_that_is_set(open_gateway: OpenGateway) -> None:
    paths = ("/compat/v1/audio/voices", "/compat/v1/audio/models")
    async with served_api(open_gateway) as api:
        for path in paths:
            assert (await api.served.call("GET", path)).status == 401
    async with served_api(open_gateway, open_voice_list=True) as api:
        voices = checked_json("VoiceList", await api.served.call("GET", paths[0]))
        assert voices["object"] == "list"
        assert checked_json("SpeechModelList", await api.served.call("GET", paths[1]))["models"]
        assert (await api.served.call("GET", paths[0], key="pk_wrong")).status == 401, "a wrong key is not ignored"
        assert (await api.served.call("GET", "/compat/v1/models")).status == 401
