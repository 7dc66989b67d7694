"""Every value in the recorded replies of providers is replaced by another one: none of that may go unnoticed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from tests.providers.recordings import UNLIKE_IMAGES, Recording, known_providers, recordings, run_recording

Path = tuple[Any, ...]  # names of fields and numbers of items

OTHER_VALUES: tuple[Any, ...] = ("x", [])  # of another type than most values
WRONG_VALUES: tuple[Any, ...] = (*OTHER_VALUES, {}, None, True, -1, 1e30, "1e999999", "nan")

# Without these it is not known whether a job has ended and what it has made. All other values can be done without, but
# for lists and objects, which may have the output in them.
STATES = {"status", "state", "task_status", "code", "finish_reasons"}
OUTPUTS = {"uri", "data", "image", "base64"}
NUMBERS = {"usage", "usageMetadata", "cost", "cost_details", "estimates", "metrics", "credits"}


@pytest.mark.parametrize("slug", sorted(known_providers()))
async def test_a_wrong_value_in_a_reply_is_a_failed_attempt_or_left_out(slug: str) -> None:
    """Any other exception would end the job without an outcome: it would be tried again until it is given up."""
    for recording in recordings():
        if recording.slug == slug and recording.model.op.task not in UNLIKE_IMAGES:
            for number in range(len(recording.content["exchanges"])):
                for changed, path, value in _changed(recording, number, OTHER_VALUES):
                    try:
                        with suppress(AssertionError):  # something else is sent next than was recorded
                            await run_recording(changed)
                    except Exception as problem:
                        pytest.fail(f"{recording}: {path} = {value!r} raises {problem!r}")


@pytest.mark.parametrize("slug", sorted(known_providers()))
async def test_a_wrong_value_beside_what_was_made_does_not_hide_it(slug: str) -> None:
    """The provider charges for it. A job whose end cannot be read is polled again and again, until it is given up: that
    may be because of its state or of the output itself, not because of a number beside them.
    """
    for recording in recordings():
        if recording.slug == slug and recording.model.op.task not in UNLIKE_IMAGES and recording.outcome == "success":
            for changed, path, value in _changed(recording, len(recording.content["exchanges"]) - 1, WRONG_VALUES):
                try:
                    ended = await run_recording(changed)
                except AssertionError:  # something else is sent next than was recorded
                    continue
                hidden = ended.get("kind") == "unreadable" and "without a file" not in ended["message"]
                assert not hidden or _is_essential(recording, path), f"{recording}: {path} = {value!r} hides the output"
                cost = ended.get("cost_usd")
                assert cost is None or 0 <= Decimal(cost) < 1000, f"{recording}: {path} = {value!r} costs {cost}"


def _is_essential(recording: Recording, path: Path) -> bool:
    value = recording.content["exchanges"][-1]["reply"]["json"]
    for name in path:
        value = value[name]
    if NUMBERS & {*path}:
        return False
    return isinstance(value, dict | list) or path[-1] in OUTPUTS or bool(STATES & {*path[-2:]})


def _changed(recording: Recording, number: int, values: Sequence[Any]) -> Iterator[tuple[Recording, Path, Any]]:
    """The recording with one value of the reply of this number replaced, where that is, and the value that it has."""
    exchange = recording.content["exchanges"][number]
    encoded = json.dumps(exchange["reply"].get("json"))
    for path in _paths(exchange["reply"].get("json")):
        for value in values:
            exchanges = list(recording.content["exchanges"])
            reply = {**exchange["reply"], "json": _replaced(json.loads(encoded), path, value)}
            exchanges[number] = {**exchange, "reply": reply}
            yield Recording(recording.path, {**recording.content, "exchanges": exchanges}), path, value


def _paths(value: Any) -> Iterator[Path]:
    """The places of all values inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (name,)
        yield from ((name, *path) for path in _paths(item))


def _replaced(container: Any, path: Path, value: Any) -> Any:
    parent = container
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value
    return container
