"""A client's speed is that of the last windows, and one that reads nothing is found."""

from penstock.http_server.transfer_speed import Transferred, TransferSpeed


def test_the_speed_is_that_since_the_window_before() -> None:
    speed = TransferSpeed(Transferred(0))
    speed.end_window(Transferred(10, received=1000, taken=500, written=500))
    speed.end_window(Transferred(20, received=1000, taken=500, written=500))
    now = Transferred(25, received=1300, taken=650, written=650)
    assert speed.seconds(now.at) == 15
    assert (speed.received_per_second(now), speed.taken_per_second(now)) == (20, 10)
    speed.restart(now)
    assert speed.seconds(30) == 5
    assert speed.received_per_second(Transferred(30, received=1400)) == 20
    assert speed.taken_per_second(now) == 0, "no time has passed"


def test_a_client_that_leaves_its_response_unread_for_three_windows_is_too_slow() -> None:
    kilobytes_taken = {"nothing": (0, 0, 0), "little": (1, 9, 18), "enough": (0, 0, 10), "all": (0, 0, 50)}
    found = {}
    for name, amounts in kilobytes_taken.items():
        speed = TransferSpeed(Transferred(0, written=50 * 1024))
        for at, taken in enumerate(amounts):
            speed.end_window(Transferred(10.0 * at, taken=taken * 1024, written=50 * 1024))
        found[name] = speed.is_too_slow
    assert found == {"nothing": True, "little": True, "enough": False, "all": False}


def test_nothing_is_expected_of_a_client_for_whom_nothing_was_written() -> None:
    speed = TransferSpeed(Transferred(0))
    for at in range(5):
        speed.end_window(Transferred(10.0 * at))
    assert not speed.is_too_slow
