"""Many outputs from providers that make few at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.generations.batches import batches


@pytest.mark.parametrize(
    ("count", "most", "calls"),
    [(1, 1, [1]), (4, 1, [1, 1, 1, 1]), (10, 4, [4, 4, 2]), (4, 4, [4]), (2, 10, [2]), (10, 3, [3, 3, 3, 1])],
)
def test_d6_n_is_split_into_calls(count: int, most: int, calls: list[int]) -> None:
    assert batches(count, most) == calls


@given(st.integers(1, 10), st.integers(1, 10))
def test_d6_the_calls_add_up_and_are_as_few_as_can_be(count: int, most: int) -> None:
    calls = batches(count, most)
    assert sum(calls) == count
    assert all(1 <= call <= most for call in calls)
    assert len(calls) == -(-count // most)
