"""One word for what is known of a file."""

from typing import Any

import pytest

from penstock.imaging.marks import NO_MARKS, Marks
from penstock.provenance.verdict import EXPLANATIONS, verdict

UNTRUSTED = {"problems": ["signingCredential.untrusted"], "chain": [{"digital_source_type": "digitalCapture"}]}
BY_MODEL = {"problems": [], "chain": [{}, {"digital_source_type": "trainedAlgorithmicMedia"}]}
CHANGED = {"problems": ["assertion.dataHash.mismatch"], "chain": []}


@pytest.mark.parametrize(
    ("credentials", "marks", "is_known", "expected"),
    [
        (None, NO_MARKS, False, "none"),
        (None, NO_MARKS, True, "made_here"),
        (None, Marks(aigc=True), False, "ai_marked"),
        (None, Marks(digital_source_type="trainedAlgorithmicMedia"), False, "ai_marked"),
        (UNTRUSTED, NO_MARKS, False, "signed"),
        (UNTRUSTED, NO_MARKS, True, "made_here"),
        (BY_MODEL, NO_MARKS, False, "ai_marked"),
        (CHANGED, NO_MARKS, True, "tampered"),
        ({"problems": ["signingCredential.expired"], "chain": []}, NO_MARKS, False, "signed"),
        ({"problems": ["manifest.inaccessible"], "chain": []}, NO_MARKS, False, "signed"),
        ({"problems": ["manifest.unreadable"], "chain": []}, NO_MARKS, False, "tampered"),
    ],
)
def test_a_file_is_judged(credentials: Any, marks: Marks, is_known: bool, expected: str) -> None:
    assert verdict(credentials, marks, is_known=is_known) == expected
    assert EXPLANATIONS[expected]
