"""Run every recorded exchange through the gateway's own code for requests and responses."""

import pytest

from penstock.providers.spec import Model
from tests.many_cases import check_each, many_cases
from tests.providers.recordings import SOUND_TASKS, Recording, as_json, known_providers, recordings, run_recording

OUTCOMES = {"success", "refusal", "failure"}


def has_recordings(slug: str) -> bool:
    """Whether it does anything else than to speak or to listen."""
    return not {model.op.task for model in known_providers()[slug].models} <= {*SOUND_TASKS}


@pytest.mark.parametrize("slug", sorted(filter(has_recordings, known_providers())))
async def test_recordings(slug: str) -> None:
    with many_cases() as each:
        for recording in recordings():
            if recording.slug == slug:
                with each.case(recording):
                    await check_recording(recording)


async def check_recording(recording: Recording) -> None:
    content = recording.content
    assert ("result" in content) != ("error" in content), "says how it ends, once"
    expected = content.get("error") or {"status": "completed", **content["result"]}
    assert {"kind", "files", "json", "events"} & expected.keys() or expected["status"] == "cancelled"
    ended = await run_recording(recording)
    assert as_json({name: ended[name] for name in expected}) == as_json(expected)


def test_providers_have_recordings_of_each_outcome_and_task() -> None:
    check_each(check_outcomes_and_tasks, known_providers())


def check_outcomes_and_tasks(slug: str) -> None:
    """A chat refuses in its own words, which are an answer like any other; an operator's own machine makes anything; an
    upscaler takes any image or video.
    """
    provider, ours = known_providers()[slug], [recording for recording in recordings() if recording.slug == slug]
    tasks = {model.op.task for model in provider.models} - {*SOUND_TASKS}
    if not tasks:
        return
    enlarges = all(model.op.task == "upscale" or _enlarges_videos(model) for model in provider.models)
    never_refuses = tasks == {"chat"} or enlarges or provider.base_url_env
    assert OUTCOMES - ({"refusal"} if never_refuses else set()) <= {recording.outcome for recording in ours}
    assert tasks <= {recording.model.op.task for recording in ours}
    streams = any("events" in recording.content.get("result", {}) for recording in ours)
    assert streams or "chat" not in tasks or slug in ("atelier", "compatible")


def _enlarges_videos(model: Model) -> bool:
    row = model.op.param("scale_factor")
    return model.op.task == "video" and row is not None and row.default is not None


def test_folders_belong_to_providers() -> None:
    assert {recording.slug for recording in recordings()} <= known_providers().keys()
