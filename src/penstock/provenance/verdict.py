"""Judge what was found out about a file, in one word and one sentence."""

from collections.abc import Mapping
from typing import Any

from penstock.imaging.marks import Marks

# How IPTC calls what was made by a model, wholly or partly.
_BY_MODEL = frozenset({"trainedAlgorithmicMedia", "compositeWithTrainedAlgorithmicMedia"})
# What does not say that somebody changed the file.
_HARMLESS = ("signingCredential.", "timeStamp.", "manifest.inaccessible")

EXPLANATIONS: Mapping[str, str] = {
    "made_here": "This gateway delivered this file, or the file that it was made from.",
    "tampered": "The file, or one that it was made from, was changed after it was signed.",
    "ai_marked": "The file says that a model made it, wholly or partly.",
    "signed": "The file has Content Credentials; what can be read of them does not say that a model made it.",
    "none": "The file says nothing about its origin. That proves nothing: such marks can be removed.",
}


def verdict(credentials: Mapping[str, Any] | None, marks: Marks, *, is_known: bool) -> str:
    """One of EXPLANATIONS. `is_known` says that the file was delivered by this gateway to the same organization."""
    if credentials and any(not code.startswith(_HARMLESS) for code in credentials["problems"]):
        return "tampered"
    if is_known:
        return "made_here"
    chain = credentials["chain"] if credentials else ()
    types = {link.get("digital_source_type") for link in chain} | {marks.digital_source_type}
    if marks.aigc or types & _BY_MODEL:
        return "ai_marked"
    return "signed" if credentials else "none"
