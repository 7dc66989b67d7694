"""Runware through the gateway, against a fake that refuses unknown fields and ids that were used."""

from tests.fake_providers.runware import Runware, tasks_of
from tests.gateway import OpenGateway
from tests.providers.calls import create_image, gateway_for


async def test_images_cost_what_runware_reports(open_gateway: OpenGateway) -> None:
    runware = Runware()
    async with gateway_for(open_gateway, "runware", runware) as running:
        for model in ("flux-schnell", "flux-dev"):
            record = await create_image(running, model=model, n=5, size="1000x1000", negative_prompt="fog")
            assert (record["status"], str(record["cost"])) == ("completed", "0.0065")
    tasks = [task for request in runware.received("run") for task in tasks_of(request)]
    assert [(task["model"], task["numberResults"]) for task in tasks] == [
        ("runware:100@1", 4),
        ("runware:100@1", 1),
        ("runware:101@1", 4),
        ("runware:101@1", 1),
    ]
    assert len({task["taskUUID"] for task in tasks}) == 4, "each call has an id of its own"
    assert (tasks[0]["width"], tasks[0]["negativePrompt"], tasks[0]["includeCost"]) == (1024, "fog", True)


async def test_failures(open_gateway: OpenGateway) -> None:
    async with gateway_for(open_gateway, "runware", Runware()) as running:
        refused = await create_image(running, model="flux-dev", prompt="nude")
        assert (refused["error_code"], refused["error_message"]) == (
            "CONTENT_POLICY_VIOLATION",
            "The prompt was flagged.",
        )
        assert await running.money() == (10_000_000_000, 0)
