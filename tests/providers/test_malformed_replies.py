"""Every value in the recorded replies of providers is replaced by another one: none of that may go unnoticed."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.providers.recordings import Recording, known_providers, recordings, run_recording

OTHER_VALUES: tuple[Any, ...] = ("x", [])  # of another type than most values


@pytest.mark.parametrize("slug", sorted(known_providers()))
async def test_a_wrong_value_in_a_reply_is_a_failed_attempt_or_left_out(slug: str) -> None:
    """Any other exception would end the job without an outcome: it would be tried again until it is given up."""
    for recording in recordings():
        if recording.slug == slug and recording.model.op.task != "chat":
            for changed, where in _changed(recording):
                try:
                    with suppress(AssertionError):  # something else is sent next than was recorded
                        await run_recording(changed)
                except Exception as problem:
                    pytest.fail(f"{recording}: {where} raises {problem!r}")


def _changed(recording: Recording) -> Iterator[tuple[Recording, str]]:
    """The recording with one value of a reply replaced, and which one."""
    for number, exchange in enumerate(recording.content["exchanges"]):
        encoded = json.dumps(exchange["reply"].get("json"))
        for path in _paths(exchange["reply"].get("json")):
            for value in OTHER_VALUES:
                exchanges = list(recording.content["exchanges"])
                reply = {**exchange["reply"], "json": _replaced(json.loads(encoded), path, value)}
                exchanges[number] = {**exchange, "reply": reply}
                yield Recording(recording.path, {**recording.content, "exchanges": exchanges}), f"{path} = {value!r}"


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """The places of all values inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (name,)
        yield from ((name, *path) for path in _paths(item))


def _replaced(container: Any, path: tuple[Any, ...], value: Any) -> Any:
    parent = container
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value
    return container
