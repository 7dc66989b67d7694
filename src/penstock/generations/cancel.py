"""Cancel a video, a sound or a transcript: at once if nothing was sent to a provider, else by asking the provider."""

from penstock.accounts.generation_ends import write_generation_ends
from penstock.errors import Cancelled
from penstock.gateway import Gateway
from penstock.generation_jobs.finish import NewFailure, failed_end, report_failure
from penstock.generation_jobs.rows import GenerationRow
from penstock.generations.retrieve import get_video_row
from penstock.generations.sounds import TRANSCRIPTS, get_sound_row
from penstock.schema import Call, Response
from penstock.store.base import Transaction

# OpenAI's clients parse the body of every response, and name themselves with this header. They send no `Prefer`.
_OPENAI_CLIENT_HEADER = "x-stainless-lang"
_WANTS_OBJECT = "return=representation"


async def cancel_video(gateway: Gateway, call: Call) -> Response:
    """Request the cancel of a video; see `_cancel`."""
    return await _cancel(gateway, call, await get_video_row(gateway, call.path["id"], call.caller.org_id), "video")


async def cancel_sound(gateway: Gateway, call: Call) -> Response:
    """Request the cancel of a sound; see `_cancel`."""
    return await _cancel(gateway, call, await get_sound_row(gateway, call.path["id"], call.caller.org_id), "audio")


async def cancel_transcript(gateway: Gateway, call: Call) -> Response:
    """Request the cancel of a transcript; see `_cancel`."""
    row = await get_sound_row(gateway, call.path["id"], call.caller.org_id, TRANSCRIPTS)
    return await _cancel(gateway, call, row, "audio")


async def _cancel(gateway: Gateway, call: Call, row: GenerationRow, kind: str) -> Response:
    """Request the cancel of a job. One that was sent to a provider may be completed all the same.

    The response is empty, as the interface says. Callers that prefer an object (`Prefer: return=representation`) get
    one, and so do OpenAI's own clients, which cannot read an empty response.
    """
    cancelled = NewFailure(Cancelled())

    async def write(tx: Transaction) -> bool:
        unfinished = await tx.one("request_cancel", id=row.id, org_id=row.org_id)
        sent = await tx.one("count_sent_attempts", request_id=row.id)
        if unfinished is None or sent is None or sent["count"]:
            await gateway.jobs.wake_everywhere(tx, row.id)
            return False
        taken = await tx.one("take_lease", id=row.id)
        if taken is None:
            return False
        request = await tx.one("get_request", id=row.id, org_id=row.org_id)
        assert request is not None, "a generation has a request"
        key_id, labels, drill = request["key_id"], request["labels"], request["drill"] or ""
        generation = GenerationRow(**unfinished)
        end = failed_end(gateway, generation, taken["lease_token"], key_id, labels, cancelled, drill)
        await write_generation_ends(tx, [end])
        return True

    if await gateway.store.write(write, org_id=row.org_id):
        report_failure(gateway, row, cancelled)
    gateway.jobs.wake(row.id)
    is_preferred = _WANTS_OBJECT in call.headers.get("prefer", "")
    if is_preferred or _OPENAI_CLIENT_HEADER in call.headers:
        headers = {"preference-applied": _WANTS_OBJECT} if is_preferred else {}
        shown = {"id": row.id, "object": f"{kind}.deleted", "deleted": row.is_unfinished}
        return Response(json=shown, headers=headers)
    return Response(status=204)
