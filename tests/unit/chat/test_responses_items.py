"""Items of a response are encoded as OpenAI's documentation shows them, and each has lists of its own."""

import msgspec

from penstock.chat.responses_items import (
    FunctionCall,
    ImageCall,
    Message,
    Reasoning,
    ReasoningPart,
    RefusalPart,
    TextPart,
)


def test_items_are_encoded_with_their_type() -> None:
    call = FunctionCall(id="fc_1", call_id="c1", name="f", arguments="{}")
    expected = {
        Message(id="msg_1", content=[TextPart("Hi"), RefusalPart("No.")]): '{"id":"msg_1","type":"message",'
        '"status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[],'
        '"logprobs":[]},{"type":"refusal","refusal":"No."}]}',
        Reasoning(id="rs_1", content=[ReasoningPart("Hm.")]): '{"id":"rs_1","type":"reasoning","status":"completed",'
        '"summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}',
        call: '{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"f","arguments":"{}"}',
    }
    assert {item: msgspec.json.encode(item).decode() for item in expected} == expected


def test_what_is_not_known_of_an_image_is_left_out() -> None:
    begun = ImageCall(id="ig_1")
    assert msgspec.to_builtins(begun) == {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "in_progress",
        "result": None,
    }
    made = msgspec.structs.replace(begun, status="completed", result="aGk=", size="8x8")
    assert msgspec.to_builtins(made) == {
        **msgspec.to_builtins(begun),
        "status": "completed",
        "result": "aGk=",
        "size": "8x8",
    }


def test_items_share_no_lists() -> None:
    first, second = Message(id="msg_1"), Message(id="msg_2")
    first.content.append(TextPart("Hi"))
    assert second.content == []
