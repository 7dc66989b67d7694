"""A file tells where it comes from, and its request is found by the file."""

import base64
import json
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.api.asgi import AsgiApp
from penstock.api.endpoints.requests import list_requests
from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.generations.endpoints import make_images
from penstock.generations.purge import purge
from penstock.generations.verify import verify_file
from penstock.provenance.seal import read_file
from penstock.schema import Caller
from tests.api.accounts import first_account, opened
from tests.api.raw_http import serving
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway
from tests.manual_clock import ManualClock
from tests.signed_files import VENDOR, VENDOR_ROOT, damaged, picture, signed_by_vendor

MODEL = {"model": "image-1", "prompt": "a fox", "response_format": "b64_json", "size": "512x512"}


async def verified(running: RunningGateway, data: bytes, caller: Caller | None = None) -> dict[str, object]:
    form = (("file", UploadedFile(data, "x.png", "image/png")),)
    call = msgspec.structs.replace(running.call(caller=caller), form=form, is_form=True)
    found: dict[str, object] = (await verify_file(running.gateway, call)).json
    return found


async def test_an_output_is_known_by_its_digest_and_by_its_manifest(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign") as running:
        made = (await make_images(running.gateway, running.call(MODEL))).json
        file = base64.b64decode(str(made["data"][0]["b64_json"]))
        found = await verified(running, file)
        assert (found["verdict"], found["request_id"]) == ("made_here", made["id"])
        query = {"sha256": str(found["sha256"])}
        listed = (await list_requests(running.gateway, running.call(query=query))).json
        assert [record["id"] for record in listed["data"]] == [made["id"]]
        query = {"manifest": made["data"][0]["content_credentials"]["manifest"]}
        listed = (await list_requests(running.gateway, running.call(query=query))).json
        assert [record["id"] for record in listed["data"]] == [made["id"]]
        stranger = await running.create_caller_in_new_org()
        assert (await verified(running, file, caller=stranger))["request_id"] is None
        assert (await list_requests(running.gateway, running.call(query=query, caller=stranger))).json["data"] == []
        await purge(running.gateway, running.call(request_id=made["id"]))
        assert (await verified(running, file))["request_id"] is None


async def test_a_stranger_cannot_pass_a_file_off_as_ours(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(provenance="sign") as running:
        made = (await make_images(running.gateway, running.call(MODEL))).json
        name = made["data"][0]["content_credentials"]["manifest"]
        monkeypatch.setattr(uuid, "uuid4", lambda: name.removeprefix("urn:c2pa:"))
        forged = signed_by_vendor(picture("png"), "image/png")
        monkeypatch.undo()
        found = await verified(running, forged)
        assert found["credentials"]["manifest"] == name  # type: ignore[index]
        assert (found["verdict"], found["request_id"]) == ("ai_marked", None)
        # One byte of our own file that no signature covers does not hide it.
        file = base64.b64decode(str(made["data"][0]["b64_json"]))
        padding = file.index(b"caBX") + file[file.index(b"caBX") :].index(bytes(100)) + 50
        found = await verified(running, file[:padding] + b"\1" + file[padding + 1 :])
        assert (found["verdict"], found["request_id"]) == ("made_here", made["id"])


async def test_files_of_others_are_read(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        signed = signed_by_vendor(picture("png"), "image/png")
        assert (await verified(running, signed))["verdict"] == "ai_marked"
        assert (await verified(running, damaged(signed)))["verdict"] == "tampered"
        plain = await verified(running, png(8, 8))
        assert (plain["verdict"], plain["credentials"], plain["content_type"]) == ("none", None, "image/png")
        assert (await verified(running, b"no file at all"))["verdict"] == "none"
        uri = f"data:image/png;base64,{base64.b64encode(signed).decode()}"
        assert (await verify_file(running.gateway, running.call({"file": uri}))).json["verdict"] == "ai_marked"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "file"),
        ({"file": "x", "url": "y"}, "file"),
        ({"file": 1}, "file"),
        ({"colour": 1}, "colour"),
        ({"url": 1}, "url"),
    ],
)
async def test_mistakes_are_named(open_gateway: OpenGateway, body: dict[str, object], param: str) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest) as problem:
            await verify_file(running.gateway, running.call(body))
        assert problem.value.param == param


async def test_of_two_files_in_a_form_none_is_verified(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        call = running.call()
        form = (("file", UploadedFile(png(8, 8))), ("file", UploadedFile(png(9, 9))))
        with pytest.raises(InvalidRequest, match="`file` may be sent once") as problem:
            await verify_file(running.gateway, msgspec.structs.replace(call, is_form=True, form=form))
        assert problem.value.param == "file"


async def test_a_digest_that_is_none_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest, match="64 hexadecimal digits"):
            await list_requests(running.gateway, running.call(query={"sha256": "xyz"}))


async def test_anybody_verifies_files_where_the_operator_lets_them(tmp_path: Path) -> None:
    clock = ManualClock()
    settings: dict[str, Any] = {"public_verify": True, "provenance": "sign"}
    async with opened(tmp_path, clock=clock, works=True, **settings) as gateway:
        account = await first_account(gateway)
        async with serving(AsgiApp(gateway), gateway.settings) as served:
            body = {"model": "atelier/sketch", "prompt": "a fox", "response_format": "b64_json", "size": "64x64"}
            made = (await served.call("POST", "/compat/v1/images/generations", key=account.plain.key, body=body)).json
            ours = made["data"][0]["b64_json"]
            theirs = base64.b64encode(signed_by_vendor(picture("png"), "image/png")).decode()
            found = [
                (await served.call("POST", "/verify", body={"file": f"data:image/png;base64,{file}"})).json
                for file in (ours, theirs)
            ]
            assert [each["verdict"] for each in found] == ["made_here", "ai_marked"]
            assert all("req_" not in json.dumps(each) for each in found)
            assert (await served.call("GET", "/verify")).headers["content-type"].startswith("text/html")
            wrong = await served.call("POST", "/verify", body={"url": "https://example.com/a.png"})
            assert (wrong.status, wrong.json["error"]["param"]) == (400, "url")
            statuses = [(await served.call("POST", "/verify", body={})).status for _ in range(8)]
            assert statuses == [400] * 7 + [429]
            clock.advance(60)
            assert (await served.call("POST", "/verify", body={})).status == 400


async def test_a_gateway_verifies_no_files_of_anybody_by_itself(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        for method in ("GET", "POST"):
            refused = await served.call(method, "/verify", body={"file": "x"} if method == "POST" else None)
            assert (refused.status, refused.code) == (404, "NOT_FOUND")


async def test_a_certificate_of_the_same_issuer_is_not_ours() -> None:
    """An authority issues certificates to many; the number tells them apart."""
    data = signed_by_vendor(picture("png"), "image/png")
    found = [read_file(data, "image/png", "", VENDOR_ROOT, serial) for serial in (VENDOR.serial, "3")]
    assert [each["is_own"] for each in found] == [True, False]
    assert all(each["vouched"] for each in found)
