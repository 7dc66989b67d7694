"""Every recorded exchange, through the gateway's own translation and reading."""

import pytest

from tests.providers.recordings import Recording, known, play, recordings, written

OUTCOMES = {"success", "refusal", "failure"}


@pytest.mark.parametrize("recording", recordings(), ids=str)
async def test_recording(recording: Recording) -> None:
    told = recording.told
    assert ("result" in told) != ("error" in told), "says how it ends, once"
    expected = told.get("error") or {"status": "completed", **told["result"]}
    assert {"kind", "files", "json", "events"} & expected.keys() or expected["status"] == "cancelled"
    ended = await play(recording)
    assert written({name: ended[name] for name in expected}) == written(expected)


@pytest.mark.parametrize("slug", sorted(known()))
def test_provider_has_recordings_of_each_outcome_and_task(slug: str) -> None:
    """A chat refuses in its own words, which are an answer like any other; an operator's own machine makes anything."""
    provider, ours = known()[slug], [recording for recording in recordings() if recording.slug == slug]
    tasks = {model.op.task for model in provider.models}
    never_refuses = tasks == {"chat"} or provider.base_url_env
    assert OUTCOMES - ({"refusal"} if never_refuses else set()) <= {recording.outcome for recording in ours}
    assert tasks <= {recording.model.op.task for recording in ours}
    streams = any("events" in recording.told.get("result", {}) for recording in ours)
    assert streams or "chat" not in tasks or slug in ("atelier", "compatible")


def test_folders_belong_to_providers() -> None:
    assert {recording.slug for recording in recordings()} <= known().keys()
