"""Count what a model has written and said, for usage that its provider does not report."""

import re

from penstock.long_bodies.long_texts import GO_BACK

# A text in JSON, as it is written. It cannot match in two ways, so a text without an end takes no longer.
JSON_TEXT = rb'": ?"([^"\\]*+(?:\\.[^"\\]*+%b)*+)"' % GO_BACK
_CONTENT = re.compile(b"content" + JSON_TEXT)  # also of `reasoning_content`
_WHOLE_TEXT = re.compile(b"(?:content|text|arguments|reasoning|refusal)" + JSON_TEXT)
_OTHER_TEXTS = (
    (b'"arguments":', re.compile(b'"arguments' + JSON_TEXT)),
    (b'"reasoning":', re.compile(b'"reasoning' + JSON_TEXT)),
)
_SPEECH = re.compile(b'"data' + JSON_TEXT)
_SPEECH_MARK = b'"audio"'
# Of base64: streams have 16-bit samples, 24,000 a second.
_SPEECH_BYTES_PER_SECOND = 24_000 * 2 * 4 / 3
_BYTES_PER_TOKEN_MAX = 6  # few texts have more on average


def written_bytes(events: bytes) -> int:
    """How many bytes of content, reasoning and arguments of tools events have."""
    count = sum(map(len, _CONTENT.findall(events)))
    for mark, text in _OTHER_TEXTS:
        if mark in events:
            count += sum(map(len, text.findall(events)))
    return count


def spoken_seconds(events: bytes | bytearray) -> float:
    """How many seconds of speech events have."""
    if _SPEECH_MARK not in events:
        return 0
    return sum(match.end(1) - match.start(1) for match in _SPEECH.finditer(events)) / _SPEECH_BYTES_PER_SECOND


def whole_text_bytes(body: bytes | bytearray) -> int:
    """How many bytes of text a whole response has, in the chat or the Responses API."""
    return sum(match.end(1) - match.start(1) for match in _WHOLE_TEXT.finditer(body))


def least_tokens(event_count: int, text_bytes: int) -> int:
    """How many tokens events with so many bytes of text have at least: some providers send a token with each event,
    others many.
    """
    return max(event_count, text_bytes // _BYTES_PER_TOKEN_MAX)
