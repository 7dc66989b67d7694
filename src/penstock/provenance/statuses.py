"""What became of the Content Credentials of an output, in one word, from the best to the worst."""

from collections.abc import Iterable, Mapping

STATUSES: Mapping[str, str] = {
    "signed": "Penstock signed it.",
    "carried": "Penstock signed it, with the provider's statement as its parent.",
    "kept": "The provider's file, byte for byte, with its credentials.",
    "none": "Nobody signed it.",
    "unsupported_format": "The format carries no credentials.",
    "too_large": "The video is larger than those that are signed.",
    "dropped_large": "The provider's statement was too large, and was left out.",
    "dropped_invalid": "The provider's statement did not hold, and was left out.",
    "removed": "It was signed, and the conversion removed that, because nothing here can sign.",
    "invalid": "The provider's signature does not hold; the file is as it came.",
    "failed": "Signing failed.",
}
GOOD_STATUSES = frozenset({"signed", "carried", "kept"})  # with which a call that requires credentials is content
_ORDER = {status: place for place, status in enumerate(STATUSES)}


def worst(found: Iterable[str]) -> str | None:
    """The worst of several statuses; None of none."""
    return max(found, key=lambda status: _ORDER.get(status, 0), default=None)
