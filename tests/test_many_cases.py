"""A test of many cases checks all of them, and fails with each that fails."""

import pytest

from tests.many_cases import check_each, many_cases


def must_be_even(number: int) -> None:
    assert number % 2 == 0, f"{number} is odd"


def test_every_case_that_fails_is_named() -> None:
    seen: list[int] = []

    def check(number: int) -> None:
        seen.append(number)
        must_be_even(number)

    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as raised:
        check_each(check, [2, 3, 4, 5], lambda number: f"number {number}")
    assert seen == [2, 3, 4, 5]
    assert [(str(failure).splitlines()[0], failure.__notes__) for failure in raised.value.exceptions] == [
        ("3 is odd", ["in the case number 3"]),
        ("5 is odd", ["in the case number 5"]),
    ]


def test_cases_that_pass_raise_nothing() -> None:
    check_each(must_be_even, [2, 4])


def test_no_case_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="there is no case"):
        check_each(must_be_even, [])


def test_cases_may_be_written_out() -> None:
    def check() -> None:
        with many_cases() as each:
            with each.case("first"):
                must_be_even(1)
            with each.case("second"):
                must_be_even(2)

    with pytest.raises(ExceptionGroup, match="1 of 2 cases failed"):
        check()


def test_an_error_that_is_missing_fails_its_case() -> None:
    def check(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            _ = 1 / number

    with pytest.raises(ExceptionGroup, match="1 of 3 cases failed") as raised:
        check_each(check, [0, 1, 0])
    assert raised.value.exceptions[0].__notes__ == ["in the case 1"]
