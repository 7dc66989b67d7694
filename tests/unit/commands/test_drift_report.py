"""The page that shows what was compared."""

import msgspec

from penstock.commands.drift_report import CheckedCall, Picture, report_page
from penstock.recordings.drift import Change, Side
from penstock.recordings.files import RecordingFile

DIGEST = "0" * 64


def side(data: bytes, **changed: object) -> Side:
    document = {
        "penstock_recording": 1, "id": "rec_1", "kind": "chat", "task": "chat", "model": "<m>", "recorded_at": "now",
        "duration_ms": 1500, "request": {"prompt": "<script>"}, "provider": "lab", "provider_name": "Lab",
        "executed_model": "lab/m", "standard": DIGEST, "strict": DIGEST,
        "files": [{"content_type": "application/json"}], **changed,
    }  # fmt: skip
    return Side(msgspec.convert(document, RecordingFile), (data,))


def test_both_sides_are_shown_and_nothing_of_them_runs() -> None:
    before, after = side(b'{"text": "<b>old</b>"}'), side(b'{"text": "<i>new</i>"}', cost="0.04")
    drifted = CheckedCall("a/01-chat.json", before, after, (Change("shape", "new: <x>"),), (Picture(b"a", None, None),))
    page = report_page([drifted, CheckedCall("b", before, skipped="no files")])
    assert "1 of 2 have changed" in page
    assert "&lt;b&gt;old&lt;/b&gt;" in page
    assert "&lt;i&gt;new&lt;/i&gt;" in page
    assert "? → 0.04" in page
    assert "1.5 → ?" in page
    for dangerous in ("<script", "<b>", "<i>", "<x>", "http://", "https://", 'src="/'):
        assert dangerous not in page


def test_what_programs_read_has_the_figures_of_both_sides() -> None:
    call = CheckedCall("a", side(b"{}", cost="0.02"), side(b"{}", duration_ms=7), pictures=(Picture(None, None, 0.25),))
    assert call.summary == {
        "recording": "a", "model": "<m>", "result": "same", "changes": [], "skipped": None, "distances": [0.25],
        "cost": ["0.02", None], "duration_ms": [1500, 7],
    }  # fmt: skip
