"""Jobs whose result has its own URL: which HTTP errors there mean that the job failed."""

from typing import Any

import pytest

from penstock.providers.spec import Model, Provider, Result
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from tests.providers.recordings import ScriptedHttpClient, scripted_upstream
from tests.unit.upstream.fetched_result import OP

MODEL = Model(id="a/b", upstream="b", op=OP, prices=())
CANDIDATE = Candidate(
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


async def poll_finished_job(status: int, body: Any) -> Result:
    """Poll a finished job whose result URL responds with this."""
    jobs = "https://acme.example/jobs/7"
    script: list[dict[str, Any]] = [
        {"sent": {"method": "GET", "url": jobs}, "reply": {"json": {"status": "completed"}}},
        {"sent": {"method": "GET", "url": f"{jobs}/result"}, "reply": {"status": status, "json": body}},
    ]
    return await scripted_upstream(ScriptedHttpClient(script)).poll(CANDIDATE, {"id": "7"})


async def test_the_result_has_the_files() -> None:
    result = await poll_finished_job(200, {"urls": ["https://cdn.example/x.mp4"]})
    assert (result.status, [file.url for file in result.files]) == ("completed", ["https://cdn.example/x.mp4"])


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (422, "unsafe", "refused"),
        (422, "bad size", "rejected"),
        (400, "bad size", "rejected"),
        (410, "gone", "rejected"),
        (413, "too large", "rejected"),
        (500, "crash", "broken"),
    ],
)
async def test_an_http_error_of_the_result_means_that_the_job_failed(status: int, words: str, kind: str) -> None:
    result = await poll_finished_job(status, {"detail": words})
    assert (result.status, result.failure_kind, result.message) == ("failed", kind, words)


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 502, 503, 504])
async def test_other_http_errors_say_nothing_about_the_job(status: int) -> None:
    with pytest.raises(AttemptFailed):
        await poll_finished_job(status, {"detail": "away"})


async def test_a_result_without_a_file_is_a_failure() -> None:
    result = await poll_finished_job(200, {"urls": []})
    assert (result.status, result.failure_kind) == ("failed", "unreadable")
