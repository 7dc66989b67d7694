"""Models, settings and the books, as operators look at them."""

from pathlib import Path

import apsw
import pytest

from penstock import settings
from penstock.commands.look import _price
from tests.command_line import done, penstock


def test_models_that_are_on_are_listed_with_their_price(tmp_path: Path) -> None:
    rows = {row[0]: row[1:] for row in done("models", "--data", tmp_path, FAL_KEY="").lines}
    assert rows["atelier/sketch"] == ["text-to-image", "atelier", "0.001 USD / image"]
    assert rows["atelier/clip"][0] == "text-to-video, image-to-video"
    assert not any("fal" in row[1] for row in rows.values())
    more = {row[0]: row[1:] for row in done("models", "--data", tmp_path, FAL_KEY="a-key").lines}
    assert any("fal" in row[1] for row in more.values())


@pytest.mark.parametrize(
    ("pricing", "shown"),
    [
        ([], "unknown"),
        ([{"unit": "image", "usd": "0.04"}], "0.04 USD / image"),
        ([{"unit": "token", "usd": "2", "input_usd": "1"}, {"unit": "token", "usd": "9"}], "1 in, 2 USD / token"),
    ],
)
def test_prices_in_few_words(pricing: list[dict[str, str]], shown: str) -> None:
    assert _price(pricing) == shown


def test_every_setting_is_listed() -> None:
    shown = done("settings").lines
    assert [row[0] for row in shown] == [name for name, *_ in settings.rows()]
    assert ["port", "PENSTOCK_PORT", "8080", "Port to listen on."] in shown


def test_an_audit_finds_what_does_not_add_up(tmp_path: Path) -> None:
    done("credit", "add", "--usd", "1", "--data", tmp_path)
    assert done("audit", "--data", tmp_path).out == "audit clean\n"
    connection = apsw.Connection(str(tmp_path / "penstock.db"))
    connection.execute("UPDATE orgs SET available = available + 1")
    connection.close()
    ended = penstock("audit", "--data", tmp_path)
    assert ended.status == 1
    assert ended.out.endswith("breaches\n")
    assert "balance" in ended.err
