"""Find the texts that callers and chat models wrote, in calls and in answers."""

import re
from collections.abc import Collection, Iterator
from html import unescape
from typing import Any

import msgspec

# Fields of messages and of answers that have names, places and contents of files in place of text.
NAMES = frozenset({
    "role", "type", "id", "object", "status", "model", "call_id", "tool_call_id", "item_id", "finish_reason", "url",
    "image_url", "format", "file_data", "data", "b64_json", "result", "encrypted_content", "signature",
})  # fmt: skip
# A whole file. What only begins like one is a text: `data: ` before a prompt hides nothing.
_FILE = re.compile(r"data:(image|video|audio|application)/[\w.+-]+(;[\w.=-]+)*;base64,[A-Za-z0-9+/_-]*={0,2}", re.ASCII)


def texts_in(value: Any, skipped: Collection[str] = ()) -> Iterator[str]:
    """The texts in JSON in their order, however deep they are, but for those that are values of skipped fields."""
    left = [value]
    while left:
        found = left.pop()
        if isinstance(found, str):
            if found and not _FILE.fullmatch(found):
                yield found
        elif isinstance(found, dict):
            fields = reversed(found.items())
            left.extend(inner for name, inner in fields if name not in skipped or not isinstance(inner, str))
        elif isinstance(found, list | tuple):
            left.extend(reversed(found))


def text_of_transcript(written: str, content_type: str) -> str:
    """What is said in a transcript of any form, without numbers and times between the words."""
    if content_type == "application/json":
        return str(msgspec.json.decode(written).get("text", ""))
    if content_type.startswith("text/plain"):
        return written.strip()
    lines = written.splitlines()
    times = [number for number, line in enumerate(lines) if " --> " in line]
    cues = [lines[start + 1 : end] for start, end in zip(times, [*times[1:], len(lines) + 1], strict=False)]
    return unescape(" ".join(cue[0] for cue in cues if cue))


def joined(*values: Any, skipped: Collection[str] = ()) -> str:
    """All texts in these values, one a line."""
    return "\n".join(texts_in(values, skipped))
