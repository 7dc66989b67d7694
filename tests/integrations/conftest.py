"""One running gateway for the integrations."""

from collections.abc import Iterator

import pytest

from tests.stories.processes import Installation, Serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A gateway as `penstock serve` starts it in an empty folder."""
    with Installation(tmp_path_factory.mktemp("integrations") / "data", "", None).serving() as serving:
        yield serving
