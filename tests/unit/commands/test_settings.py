"""`penstock settings`."""

from penstock import settings
from tests.command_line import done


def test_every_setting_is_listed() -> None:
    shown = done("settings").lines
    assert [row[0] for row in shown] == [name for name, *_ in settings.rows()]
    assert ["port", "PENSTOCK_PORT", "8080", "Port to listen on."] in shown
