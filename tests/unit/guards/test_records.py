"""What is shown of a guard says what it watches and gives nothing away."""

from typing import Any

from penstock.guards.configured import Guard, read_guards
from penstock.guards.records import guard_record, is_shown_to
from penstock.guards.verdict_counts import ALL_ORGS
from penstock.values import OrgId

MINE, THEIRS = OrgId("org_mine"), OrgId("org_theirs")


def guard(**table: Any) -> Guard:
    [found] = read_guards({"g": table})
    return found


def test_words_and_urls_are_not_shown() -> None:
    words = guard(rules={"words": ["gun", "canary"], "max_characters": 9})
    assert guard_record(words, {"refuse": 2})["rules"] == {
        "words": 2,
        "max_characters": 9,
        "models_without_images": [],
    }
    assert guard_record(words, {"refuse": 2})["verdicts"] == {"pass": 0, "flag": 0, "refuse": 2, "error": 0}
    service = guard(http={"url": "https://moderation.test/canary?token=canary"})
    judge = guard(model={"model": "m", "question": "canary?"})
    for each in (words, service, judge):
        assert "canary" not in str(guard_record(each, {}))
    assert guard_record(service, {})["host"] == "moderation.test"
    assert guard_record(service, {}, MINE)["host"] is None
    assert guard_record(judge, {})["model"] == "m"


def test_an_admin_sees_no_other_organizations() -> None:
    shared = guard(rules={}, orgs=[MINE, THEIRS])
    assert guard_record(shared, {})["orgs"] == [MINE, THEIRS]
    assert guard_record(shared, {}, MINE)["orgs"] == [MINE]
    assert [is_shown_to(shared, org) for org in (MINE, THEIRS, OrgId("org_x"), ALL_ORGS)] == [True, True, False, True]
    assert is_shown_to(guard(rules={}), MINE)


def test_kinds_are_those_that_it_really_watches() -> None:
    eyes = guard(when="output", http={"url": "https://moderation.test/"})
    assert guard_record(eyes, {})["kinds"] == ["image", "edit", "video", "chat", "transcription"]
    assert guard_record(guard(when="output", rules={}), {})["kinds"] == ["chat", "transcription"]
    assert guard_record(guard(rules={}, kinds=["video", "image"]), {})["kinds"] == ["image", "video"]
