"""What has changed between two recordings of one call."""

from decimal import Decimal
from typing import Any

import msgspec

from penstock.recordings.drift import Limits, Side, changes
from penstock.recordings.files import RecordingFile, read_document
from tests.fake_providers.scripted import png

DIGEST = "0" * 64
CHAT: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "cost": 0.0004},
}


def side(kind: str, content_type: str, *media: bytes, **changed: Any) -> Side:
    document = {
        "penstock_recording": 1, "id": "r", "kind": kind, "task": "chat" if kind == "response" else kind, "model": "m",
        "recorded_at": "now", "duration_ms": 1000, "request": {}, "provider": "lab", "provider_name": "Lab",
        "executed_model": "lab/m", "standard": DIGEST, "strict": DIGEST, **changed,
    }  # fmt: skip
    document.setdefault("files", [{"content_type": content_type, "width": 8, "height": 8} for _ in media])
    return Side(msgspec.convert(document, RecordingFile), media)


def chat(**changed: Any) -> Side:
    return side("chat", "application/json", msgspec.json.encode({**CHAT, **changed}))


def stream(*events: Any) -> Side:
    data = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    return side("chat", "text/event-stream", data)


def found(before: Side, after: Side, *distances: float | None, **limits: Any) -> list[str]:
    return [f"{each.kind}: {each.text}" for each in changes(before, after, Limits(**limits), distances)]


def test_other_words_are_no_change() -> None:
    other = {"index": 0, "message": {"role": "assistant", "content": "good morning"}, "finish_reason": "stop"}
    assert found(chat(), chat(id="c2", choices=[other, other])) == []


def test_fields_that_came_or_went_are_named_with_their_types() -> None:
    cut = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "length"}
    assert found(chat(), chat(choices=[cut], system_fingerprint="f")) == [
        "shape: new: choices[].finish_reason: text `length`",
        "shape: new: choices[].message.content: null",
        "shape: new: system_fingerprint: text",
        "shape: gone: choices[].finish_reason: text `stop`",
        "shape: gone: choices[].message.content: text",
    ]
    many = {f"field_{number}": True for number in range(30)}
    assert found(chat(), chat(**many))[-1] == "shape: and 10 more differences"


def test_the_events_of_a_stream_count_together() -> None:
    role, word, end = {"delta": {"role": "assistant"}}, {"delta": {"content": "a"}}, {"delta": {}, "done": 1}
    assert found(stream(role, word, end), stream(role, word, word, end)) == []
    assert found(stream(role, word, end), stream(role, end)) == ["shape: gone: delta.content: text"]


def test_the_cost_is_that_of_the_recording_or_of_the_chats_own_usage() -> None:
    assert chat().cost == Decimal("0.0004")
    assert stream({"response": {"usage": {"cost": 0.5}}}).cost == Decimal("0.5")
    assert side("image", "image/png", png(8, 8)).cost is None
    dearer = chat(usage={"prompt_tokens": 3, "cost": 0.0006})
    assert found(chat(), dearer) == ["cost: costs $0.0006, was $0.0004 (+50%)"]
    assert found(chat(), chat(usage={"prompt_tokens": 3, "cost": 0.00041})) == []
    free, dear = (side("image", "image/png", png(8, 8), cost=cost) for cost in ("0", "0.04"))
    assert found(free, dear) == ["cost: costs $0.04, was $0"]
    assert found(side("image", "image/png", png(8, 8)), dear) == [], "the earlier cost is not known"


def test_files_and_who_made_them_are_the_shape_of_media() -> None:
    one = side("image", "image/png", png(8, 8))
    larger = side("image", "image/png", png(8, 8), files=[{"content_type": "image/webp", "width": 16, "height": 16}])
    assert found(one, larger) == ["shape: made image/webp 16x16, was image/png 8x8"]
    assert found(one, side("image", "image/png", png(8, 8), executed_model="annex/m")) == [
        "shape: made by annex/m, was lab/m"
    ]
    short, long = (side("video", "video/mp4", b"v", seconds=seconds) for seconds in (4.0, 5.0))
    assert found(short, long) == ["shape: lasts 5.0 s, was 4.0 s"]


def test_latency_and_pictures_have_limits() -> None:
    slow = side("image", "image/png", png(8, 8), duration_ms=2100)
    one = side("image", "image/png", png(8, 8))
    assert found(one, slow, 0.39) == ["latency: took 2.1 s, was 1.0 s"]
    assert found(one, slow, None, 0.41, latency_percent=120) == ["picture: picture 2 looks different: distance 0.41"]
    quick = side("image", "image/png", png(8, 8), duration_ms=10)
    assert found(quick, side("image", "image/png", png(8, 8), duration_ms=400)) == [], (
        "too little to be more than noise"
    )


def test_a_recording_file_may_say_what_the_call_cost() -> None:
    files = [{"content_type": "image/png", "width": 8, "height": 8, "file": "a.png"}]
    document = msgspec.to_builtins(side("image", "image/png", png(8, 8), files=files, cost="0.04").document)
    assert read_document(document, {"a.png": png(8, 8)}).document.cost == "0.04"
