"""An edit and a video lead back to their image, within an organization."""

import base64
from typing import Any

from penstock.generations.endpoints import edit_images
from penstock.schema import Caller
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway
from tests.unit.generations.library_calls import library
from tests.unit.media.signed_urls import open_url, read_body


def data_uri(number: int) -> str:
    return "data:image/png;base64," + base64.b64encode(png(number, number)).decode()


async def test_an_edit_and_a_video_lead_back_to_their_image(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        image = await running.image()
        [first] = await library(running)
        stored = await read_body(await open_url(running, first["url"]))
        sent = "data:image/png;base64," + base64.b64encode(stored).decode()
        edit = await running.edit(image=[sent, data_uri(40), sent], size="48x48")
        video = await running.wait_for_video((await running.video(input_reference={"image_url": sent})).json["id"])
        by_request = {output["request_id"]: output for output in await library(running)}
        assert by_request[edit["id"]]["made_from"] == [{"output_id": first["id"], "request_id": image["id"]}]
        assert by_request[video["id"]]["made_from"] == [{"output_id": first["id"], "request_id": image["id"]}]
        assert by_request[image["id"]]["used_in"] == sorted([edit["id"], video["id"]])

        await running.purge(image["id"])
        by_request = {output["request_id"]: output for output in await library(running)}
        assert by_request[edit["id"]]["made_from"] == by_request[video["id"]]["made_from"] == []


async def test_an_image_of_another_organization_is_no_origin(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image()
        [first] = await library(running)
        sent = base64.b64encode(await read_body(await open_url(running, first["url"]))).decode()
        other = await running.create_caller_in_new_org()
        body = {"model": "edit-1", "prompt": "x", "image": ["data:image/png;base64," + sent]}
        await outputs_of_edit(running, body, other)
        [edit] = await library(running, other)
        assert edit["made_from"] == []
        assert (await library(running))[0]["used_in"] == []


async def outputs_of_edit(running: RunningGateway, body: dict[str, Any], caller: Caller) -> None:
    call = running.call(body, endpoint="/compat/v1/images/edits", caller=caller)
    await edit_images(running.gateway, call)
