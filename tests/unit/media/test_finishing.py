"""Outputs get the requested format and their Content Credentials, or the call fails if it requires those."""

import base64
import csv
import io
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from penstock.api.endpoints.requests import list_requests, retrieve_request
from penstock.errors import ProvenanceUnavailable
from penstock.generations.endpoints import edit_images, make_images
from penstock.imaging.marks import find_marks
from penstock.imaging.svg import clean, is_cleaned
from penstock.media.storage import storage_key
from penstock.provenance.seal import read_file, read_state
from penstock.provenance.xmp import packet, with_xmp
from tests.fake_providers import faults
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway
from tests.signed_files import camera_photo, damaged, picture, signed_by_vendor

SIGNED = base64.b64encode(signed_by_vendor(png(64, 64), "image/png")).decode()
MODEL = {"model": "image-1", "prompt": "a canary prompt"}


async def stored_file(running: Any, body: Any) -> bytes:
    row = await running.gateway.store.one("find_seal_by_manifest", org_id=running.caller.org_id, manifest=body)
    pieces = [chunk async for chunk in running.storage.read(storage_key(row["media_id"]), 0, 10**9)]
    return b"".join(pieces)


async def test_an_image_is_signed_and_its_record_says_so(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign") as running:
        made = await make_images(running.gateway, running.call({**MODEL, "output_format": "webp"}))
        told = made.json["data"][0]["content_credentials"]
        assert (told["status"], told["signer"], told["trusted"]) == ("signed", "Penstock (self-made)", False)
        assert made.json["metadata"]["content_credentials"] == "signed"
        assert made.headers["x-service-content-credentials"] == "signed"
        record = (await retrieve_request(running.gateway, running.call(request_id=made.json["id"]))).json
        assert record["outputs"][0]["content_credentials"] == told
        file = await stored_file(running, told["manifest"])
        state = read_state(file, "image/webp", "")
        assert state
        assert state["manifest"] == told["manifest"]
        for secret in (b"canary prompt", running.caller.org_id.encode(), running.caller.key_id.encode()):
            assert secret not in file


async def test_the_seal_of_a_provider_survives_a_conversion(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="keep") as running:
        running.lab.images.always(faults.altered(data=[{"b64_json": SIGNED}]))
        kept = await make_images(running.gateway, running.call(MODEL))
        assert kept.json["data"][0]["content_credentials"] == {
            "status": "kept",
            "digital_source_type": "trainedAlgorithmicMedia",
        }
        carried = await make_images(running.gateway, running.call({**MODEL, "output_format": "jpeg"}))
        told = carried.json["data"][0]["content_credentials"]
        assert (told["status"], told["vendor"]["state"]) == ("carried", "Valid")
        file = await stored_file(running, told["manifest"])
        state = read_state(file, "image/jpeg", "")
        assert state
        assert state["manifests"] == 2


async def test_without_the_library_a_conversion_removes_the_seal_and_says_so(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(provenance="keep") as running:
        monkeypatch.setattr(running.gateway.sealer, "signing", None)
        running.lab.images.always(faults.altered(data=[{"b64_json": SIGNED}]))
        made = await make_images(running.gateway, running.call({**MODEL, "output_format": "jpeg"}))
        assert made.json["metadata"]["content_credentials"] == "removed"
        required = {**MODEL, "output_format": "jpeg", "provenance": {"required": True}}
        with pytest.raises(ProvenanceUnavailable, match="its Content Credentials is `removed`"):
            await make_images(running.gateway, running.call(required))
        assert [record["cost"] for record in await running.records() if record["status"] != "completed"] == [0]


async def test_an_output_whose_seal_fails_is_delivered_without(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway(provenance="sign") as running:
        signing = running.gateway.sealer.signing
        assert signing
        monkeypatch.setattr(type(signing), "is_valid", lambda *_: False)  # the certificate has expired
        made = await make_images(running.gateway, running.call(MODEL))
        assert made.json["metadata"]["content_credentials"] == "failed"


async def test_off_leaves_everything_as_it_was(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign") as running:
        made = await make_images(running.gateway, running.call({**MODEL, "provenance": "off"}))
        assert "content_credentials" not in made.json["data"][0]
        assert "content_credentials" not in made.json["metadata"]


async def test_requests_are_found_by_what_became_of_their_credentials(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign") as running:
        gateway = running.gateway
        signed = await make_images(gateway, running.call({**MODEL, "n": 2}))
        off = await make_images(gateway, running.call({**MODEL, "provenance": "off"}))
        none = await make_images(gateway, running.call({**MODEL, "provenance": "keep"}))

        async def found(**query: str) -> list[str]:
            return [each["id"] for each in (await list_requests(gateway, running.call(query=query))).json["data"]]

        assert await found(content_credentials="signed") == [signed.json["id"]]
        assert await found(content_credentials="none", model="image-1") == [none.json["id"]]
        assert await found(content_credentials="signed", user="nobody") == []
        everything = await list_requests(gateway, running.call(query={"format": "csv"}))
        assert everything.chunks
        lines = csv.DictReader(io.StringIO(b"".join([chunk async for chunk in everything.chunks]).decode()))
        statuses = {line["id"]: line["content_credentials"] for line in lines}
        assert statuses == {signed.json["id"]: "signed", off.json["id"]: "", none.json["id"]: "none"}


async def test_the_policy_of_an_organization_counts_for_its_calls(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="keep") as running:
        call = running.call(MODEL)
        caller = replace(call.caller, provenance="sign; required")
        made = await make_images(running.gateway, msgspec.structs.replace(call, caller=caller))
        assert made.json["metadata"]["content_credentials"] == "signed"


async def test_the_credentials_of_an_input_are_repeated_or_counted_as_left_out(open_gateway: OpenGateway) -> None:
    """Cleaning strips the input before the provider gets it; what it said stands in the seal of the output."""
    photo = camera_photo()
    urls = [
        f"data:image/jpeg;base64,{base64.b64encode(each).decode()}" for each in (photo, damaged(photo), picture("JPEG"))
    ]
    body = {"model": "edit-1", "prompt": "a hat", "images": [{"image_url": url} for url in urls]}
    async with open_gateway(provenance="sign") as running:
        made = await edit_images(running.gateway, running.call(body))
        told = made.json["data"][0]["content_credentials"]
        assert (told["status"], told["inputs_left_out"]) == ("signed", 1)
        read = read_file(await stored_file(running, told["manifest"]), "image/png", "")["credentials"]
        assert [link.get("model") for link in read["chain"]] == ["lab/easel-1", "A camera"]
        off = await edit_images(running.gateway, running.call({**body, "provenance": "off"}))
        assert "content_credentials" not in off.json["data"][0]
        kept = await running.rows("SELECT request FROM generations")
        assert sorted(b'"credentials":"' in bytes(row["request"]) for row in kept) == [False, True]


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><script>alert(1)</script><rect width="5"/></svg>'


async def test_a_vector_image_is_cleaned_and_then_sealed(open_gateway: OpenGateway) -> None:
    """It can still be told from one that was not cleaned, which recordings from elsewhere must be."""
    async with open_gateway(provenance="sign") as running:
        running.lab.images.always(faults.altered(data=[{"b64_json": base64.b64encode(SVG).decode()}]))
        made = await make_images(running.gateway, running.call(MODEL))
        told = made.json["data"][0]["content_credentials"]
        assert told["status"] == "signed"
        file = await stored_file(running, told["manifest"])
        assert b"script" not in file
        state = read_state(file, "image/svg+xml", "")
        assert state
        assert (state["state"], state["manifest"]) == ("Valid", told["manifest"])
        assert is_cleaned(file)["is_cleaned"]
        scripted = file.replace(b"<rect", b"<script></script><rect")
        for bad in (scripted, file + b"<x/>", file.replace(b"AA", b"&#65;A", 1)):
            assert not is_cleaned(bad)["is_cleaned"]
        off = await make_images(running.gateway, running.call({**MODEL, "provenance": "keep"}))
        assert off.json["data"][0]["content_credentials"] == {"status": "none"}


async def test_the_seal_of_a_vector_image_is_carried_through_cleaning(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="keep") as running:
        signed = base64.b64encode(signed_by_vendor(clean(SVG).data, "image/svg+xml")).decode()
        running.lab.images.always(faults.altered(data=[{"b64_json": signed}]))
        made = await make_images(running.gateway, running.call(MODEL))
        told = made.json["data"][0]["content_credentials"]
        assert (told["status"], told["vendor"]["state"]) == ("carried", "Valid")


async def test_images_that_are_signed_say_in_their_xmp_how_they_were_made(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign", provenance_aigc_producer="Acme") as running:
        for output_format in ("png", "jpeg", "webp"):
            made = await make_images(running.gateway, running.call({**MODEL, "output_format": output_format}))
            told = made.json["data"][0]["content_credentials"]
            file = await stored_file(running, told["manifest"])
            marks = find_marks(file)
            assert (marks.digital_source_type, marks.aigc) == ("trainedAlgorithmicMedia", True)
            assert b"Acme" in file
            state = read_state(file, f"image/{output_format}", "")
            assert state
            assert state["state"] == "Valid"


async def test_what_a_provider_says_in_its_xmp_survives_a_conversion(open_gateway: OpenGateway) -> None:
    marked = with_xmp(png(64, 64), "image/png", packet({"source_type": "compositeSynthetic"}))
    async with open_gateway(provenance="keep") as running:
        running.lab.images.always(faults.altered(data=[{"b64_json": base64.b64encode(marked).decode()}]))
        for policy, found in (("keep", "compositeSynthetic"), ("off", None)):
            body = {**MODEL, "output_format": "webp", "response_format": "b64_json", "provenance": policy}
            made = await make_images(running.gateway, running.call(body))
            file = base64.b64decode(str(made.json["data"][0]["b64_json"]))
            assert (file[8:12], find_marks(file).digital_source_type) == (b"WEBP", found)
        running.lab.images.always(faults.altered(data=[{"b64_json": SIGNED}]))
        body = {**MODEL, "output_format": "webp"}
        carried = (await make_images(running.gateway, running.call(body))).json["data"][0]["content_credentials"]
        file = await stored_file(running, carried["manifest"])
        assert (carried["status"], find_marks(file).digital_source_type) == ("carried", "trainedAlgorithmicMedia")


async def test_a_download_says_what_became_of_its_credentials(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="sign") as running:
        for policy, status in (("sign", "signed"), ("off", None)):
            made = await make_images(running.gateway, running.call({**MODEL, "provenance": policy}))
            url = urlsplit(made.json["data"][0]["url"])
            found = await running.gateway.media.open(url.path.removeprefix("/m/"), dict(parse_qsl(url.query)), None)
            assert found.headers.get("x-service-content-credentials") == status


async def test_a_dry_run_says_that_outputs_would_be_signed(open_gateway: OpenGateway) -> None:
    async with open_gateway(provenance="keep") as running:
        dry = {"dryRun": "true"}
        signed = await make_images(running.gateway, running.call({**MODEL, "provenance": "sign"}, query=dry))
        assert signed.json["content_credentials"] == "expected"
        kept = await make_images(running.gateway, running.call(MODEL, query=dry))
        assert "content_credentials" not in kept.json
