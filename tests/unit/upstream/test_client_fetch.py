"""Jobs whose result lives apart from their status: a failure told there is the job's own, trouble on the way is not."""

from typing import Any

import pytest

from penstock.providers.spec import File, Model, Operation, Provider, Reply, Result
from penstock.upstream.catalog import Candidate
from penstock.upstream.client import AttemptFailed
from tests.providers.recordings import Script, carrier


def read(reply: Reply) -> Result:
    if "status" in reply.json:
        return Result(status=reply.json["status"], ref={"id": "7"})
    return Result(files=tuple(File(url=url) for url in reply.json["urls"]))


OP = Operation(
    task="video", send="POST /jobs", poll="GET /jobs/{id}", fetch="GET /jobs/{id}/result", params=(), read=read
)
MODEL = Model(id="a/b", upstream="b", op=OP, prices=())
OPTION = Candidate(
    Provider(
        slug="acme",
        name="Acme",
        docs="",
        base_url="https://acme.example",
        models=(MODEL,),
        error_message=lambda reply: str(reply.json["detail"]),
        failure_kind=lambda reply: "refused" if reply.json["detail"] == "unsafe" else None,
    ),
    MODEL,
)


async def polled(status: int, body: Any) -> Result:
    """A finished job whose result answers like this."""
    jobs = "https://acme.example/jobs/7"
    script: list[dict[str, Any]] = [
        {"sent": {"method": "GET", "url": jobs}, "reply": {"json": {"status": "completed"}}},
        {"sent": {"method": "GET", "url": f"{jobs}/result"}, "reply": {"status": status, "json": body}},
    ]
    return await carrier(Script(script)).poll(OPTION, {"id": "7"})


async def test_files() -> None:
    result = await polled(200, {"urls": ["https://cdn.example/x.mp4"]})
    assert (result.status, [file.url for file in result.files]) == ("completed", ["https://cdn.example/x.mp4"])


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (422, "unsafe", "refused"),
        (422, "bad size", "rejected"),
        (400, "bad size", "rejected"),
        (500, "crash", "broken"),
    ],
)
async def test_errors_are_verdicts(status: int, words: str, kind: str) -> None:
    result = await polled(status, {"detail": words})
    assert (result.status, result.failure_kind, result.message) == ("failed", kind, words)


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 502, 503, 504])
async def test_trouble_on_the_way_is_none(status: int) -> None:
    with pytest.raises(AttemptFailed):
        await polled(status, {"detail": "away"})


async def test_no_file_is_no_success() -> None:
    result = await polled(200, {"urls": []})
    assert (result.status, result.failure_kind) == ("failed", "unreadable")
