"""Make batches of a whole gateway, and wait for them."""

from typing import Any

import msgspec

from penstock.api.endpoints import batches
from penstock.batches.records import BatchRecord, get_batch
from penstock.fields import UploadedFile
from tests.gateway import RunningGateway

IMAGE: dict[str, Any] = {"model": "image-1", "prompt": "a pear", "size": "64x64"}
CHAT: dict[str, Any] = {"model": "lab/chat", "messages": [{"role": "user", "content": "hello"}]}


def image_rows(count: int) -> list[dict[str, Any]]:
    return [{**IMAGE, "prompt": f"pear {number}"} for number in range(1, count + 1)]


async def create(running: RunningGateway, query: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    """The response to a call that creates a batch, of images unless the body says otherwise."""
    call = running.call({"endpoint": "/v1/images/generations", **body}, endpoint="/v1/batches", query=query)
    made: dict[str, Any] = (await batches.create_batch(running.gateway, call)).json
    return made


async def create_from_file(running: RunningGateway, data: bytes, filename: str, **fields: str) -> dict[str, Any]:
    """The response to a call that creates a batch from a file in a form."""
    form: tuple[tuple[str, str | UploadedFile], ...] = (("file", UploadedFile(data, filename)), *fields.items())
    call = msgspec.structs.replace(running.call(endpoint="/v1/batches"), is_form=True, form=form)
    made: dict[str, Any] = (await batches.create_batch(running.gateway, call)).json
    return made


async def batch(running: RunningGateway, batch_id: str) -> BatchRecord:
    return await get_batch(running.gateway.store, running.caller.org_id, batch_id)


async def wait_for(running: RunningGateway, batch_id: str, *statuses: str) -> BatchRecord:
    """A batch once it is in one of these states; by default once it has ended."""

    async def met() -> bool:
        return (await batch(running, batch_id)).status in (statuses or ("completed", "cancelled"))

    await running.wait_until(met, step_seconds=0.1)
    return await batch(running, batch_id)


async def change(running: RunningGateway, name: str, batch_id: str, **body: Any) -> dict[str, Any]:
    """The response to a call that pauses, resumes or cancels a batch."""
    call = running.call(body, endpoint="/v1/batches", batch_id=batch_id)
    changed: dict[str, Any] = (await getattr(batches, f"{name}_batch")(running.gateway, call)).json
    return changed
