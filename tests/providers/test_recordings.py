"""Every recorded exchange, through the gateway's own translation and reading."""

import pytest

from tests.providers.recordings import Recording, known, play, recordings, written

OUTCOMES = {"success", "refusal", "failure"}


@pytest.mark.parametrize("recording", recordings(), ids=str)
async def test_recording(recording: Recording) -> None:
    ended = await play(recording)
    expected = recording.told.get("error") or {"status": "completed", **recording.told["result"]}
    assert written({name: ended[name] for name in expected}) == written(expected)


@pytest.mark.parametrize("recording", recordings(), ids=str)
def test_recording_says_how_it_ends(recording: Recording) -> None:
    assert ("result" in recording.told) != ("error" in recording.told)
    named = recording.told.get("error", {"kind": ""}) if "error" in recording.told else recording.told["result"]
    assert {"kind", "files", "json", "events"} & named.keys() or named.get("status") == "cancelled"


@pytest.mark.parametrize("slug", sorted(known()))
def test_provider_has_recordings_of_each_outcome(slug: str) -> None:
    """A chat refuses in its own words, which are an answer like any other; an operator's own machine makes anything."""
    only_chats = all(model.op.task == "chat" for model in known()[slug].models)
    shown = {recording.outcome for recording in recordings() if recording.slug == slug}
    assert OUTCOMES - ({"refusal"} if only_chats or known()[slug].base_url_env else set()) <= shown


@pytest.mark.parametrize("slug", sorted(known()))
def test_provider_has_a_recording_of_each_task(slug: str) -> None:
    tasks = {model.op.task for model in known()[slug].models}
    assert tasks <= {recording.model.op.task for recording in recordings() if recording.slug == slug}


@pytest.mark.parametrize("slug", sorted(slug for slug in known() if slug not in ("atelier", "compatible")))
def test_provider_with_chats_has_a_streamed_one(slug: str) -> None:
    chats = [model for model in known()[slug].models if model.op.task == "chat"]
    ends = [recording.told.get("result", {}) for recording in recordings() if recording.slug == slug]
    assert not chats or any("events" in end for end in ends)


def test_folders_belong_to_providers() -> None:
    assert {recording.slug for recording in recordings()} <= known().keys()
