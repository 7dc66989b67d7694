"""Cut a text that is longer than a model takes: at the end of a paragraph, a sentence, a clause or a word."""

import re
import unicodedata
from collections.abc import Iterator

# In the order in which they are tried. Each matches what stays at the end of the first part.
_PLACES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+[」』）]*"),
    re.compile(r"[,;:–—]\s+|[、，；：]"),
    re.compile(r"\s+"),
)
_JOINERS = "\u200d\u200c"
_LEAST_SHARE = 4  # a place in the first quarter makes too short a part


def split_text(text: str, max_characters: int) -> list[str]:
    """The text in parts of at most so many characters, none of them blank; joined they are the text."""
    return list(_parts(text, max_characters))


def _parts(text: str, most: int) -> Iterator[str]:
    start = 0
    while len(text) - start > most:
        end = _end(text, start, start + most)
        yield text[start:end]
        start = end
    yield text[start:]


def _end(text: str, start: int, last: int) -> int:
    """Where to cut, between `start` and `last`."""
    window = text[start:last]
    for place in _PLACES:
        found = [match.end() for match in place.finditer(window) if match.end() > len(window) // _LEAST_SHARE]
        ends = [end for end in found if not _is_joined(text, start + end)]
        if ends and not text[start + ends[-1] :].isspace():
            return start + ends[-1]
    end = last
    while end > start + 1 and _is_joined(text, end):
        end -= 1
    return end if end > start + 1 else last


def _is_joined(text: str, at: int) -> bool:
    """Whether a cut here would be inside of what people see as one character, or inside a number."""
    before, after = text[at - 1], text[at]
    if before.isdigit() and after.isdigit():
        return True
    is_mark = unicodedata.category(after).startswith("M") or "\U0001f3fb" <= after <= "\U0001f3ff"
    is_flag = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff"
    return is_mark or is_flag or after in _JOINERS or before in _JOINERS
