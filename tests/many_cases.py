"""Check many cases in one test: as tests of their own, small checks cost less time than pytest needs to start each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

T = TypeVar("T")


class ManyCases:
    """Goes on after a case that fails, and fails in the end with all of them."""

    def __init__(self) -> None:
        self._count = 0
        self._failures: list[Exception] = []

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Run one case; what it raises is kept, with its name."""
        self._count += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as failure:
            error = failure if isinstance(failure, Exception) else AssertionError(str(failure))
            error.add_note(f"in the case {name}")
            self._failures.append(error)

    def finish(self) -> None:
        """Raise an ExceptionGroup of all failures, if there are any. Raises AssertionError if there was no case."""
        assert self._count, "there is no case"
        if self._failures:
            raise ExceptionGroup(f"{len(self._failures)} of {self._count} cases failed", self._failures)


@contextmanager
def many_cases() -> Iterator[ManyCases]:
    cases = ManyCases()
    yield cases
    cases.finish()


def check_each(check: Callable[[T], object], cases: Iterable[T], name: Callable[[T], object] = str) -> None:
    """Call a function with each case, and fail with all cases that it fails for."""
    with many_cases() as each:
        for case in cases:
            with each.case(name(case)):
                check(case)
