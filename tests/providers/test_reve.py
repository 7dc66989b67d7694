"""Reve through the gateway, against a fake that refuses what Comfy's description refuses."""

from tests.fake_providers.reve import Reve, error
from tests.fake_providers.server import responds
from tests.gateway import OpenGateway
from tests.providers.calls import IMAGE_URI, create_image, edit_image, gateway_for


async def test_images_edits_and_combinations(open_gateway: OpenGateway) -> None:
    """The number of images decides between two endpoints, and the credits that Reve reports are charged."""
    reve = Reve()
    async with gateway_for(open_gateway, "reve", reve) as running:
        made = await create_image(running, model="reve", size="16:9")
        edited = await edit_image(running, model="reve", size="1:1")
        combined = await edit_image(running, model="reve-fast", image=[IMAGE_URI, IMAGE_URI], size="1:1")
        costs = [str(record["cost"]) for record in (made, edited, combined)]
        assert costs == ["0.024", "0.04", "0.006667"], "18, 30 and 5 credits"
    first, second, third = reve.received("make")
    plain = IMAGE_URI.partition(",")[2]
    assert first.fields == {"prompt": "a pear", "aspect_ratio": "16:9", "version": "reve-create@20250915"}
    assert second.fields == {
        "edit_instruction": "add a hat", "reference_image": plain, "aspect_ratio": "1:1",
        "version": "reve-edit@20250915",
    }  # fmt: skip
    assert (third.path, third.fields["reference_images"]) == ("/v1/image/remix", [plain, plain])


async def test_refusals_and_failures_are_free(open_gateway: OpenGateway) -> None:
    reve = Reve()
    blocked = error(400, "CONTENT_POLICY_VIOLATION", "The prompt violates the content policy.")
    unpaid = error(402, "INSUFFICIENT_CREDITS", "Your budget has run out.")
    async with gateway_for(open_gateway, "reve", reve) as running:
        unseen = await create_image(running, model="reve", prompt="forbidden")
        reve.next("make", *(responds(response.json, response.status) for response in (blocked, unpaid)))
        refused = await create_image(running, model="reve")
        failed = await create_image(running, model="reve")
        assert [record["error_code"] for record in (unseen, refused, failed)] == [
            "CONTENT_POLICY_VIOLATION", "CONTENT_POLICY_VIOLATION", "UPSTREAM_ERROR",
        ]  # fmt: skip
        assert await running.money() == (10_000_000_000, 0)
