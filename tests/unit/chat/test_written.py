"""What a model has written and said, counted in its events."""

from base64 import b64encode

from penstock.chat.written import least_tokens, spoken_seconds, whole_text_bytes, written_bytes


def test_texts_of_events_are_counted_with_reasoning_and_arguments() -> None:
    events = b'data: {"content":"abc","reasoning_content":"de"}\n\ndata: {"arguments":"{\\"a\\":1}"}\n\n'
    assert written_bytes(events) == 3 + 2 + len(b'{\\"a\\":1}')
    assert whole_text_bytes(b'{"content":"abc","refusal":"de","id":"xyz"}') == 5


def test_an_event_is_a_token_at_least() -> None:
    assert least_tokens(3, 6) == 3
    assert least_tokens(3, 600) == 100


def test_seconds_of_speech_are_counted_in_base64() -> None:
    second = b64encode(bytes(48_000))
    assert spoken_seconds(b'data: {"audio":{"id":"a","data":"' + second + b'"}}\n\n') == 1
    assert spoken_seconds(b'data: {"content":"data"}\n\n') == 0
    assert spoken_seconds(b'{"image":{"data":"' + second + b'"}}') == 0
