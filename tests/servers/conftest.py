"""What the tests of all servers share."""

from collections.abc import Iterator

import openai
import pytest

from tests.stories.processes import Serving

SECONDS = 120  # for one call, on a machine that may be busy


@pytest.fixture
def client(served: Serving) -> Iterator[openai.OpenAI]:
    """OpenAI's client of the gateway that a test file puts in front of its server, with its fixture `served`."""
    with openai.OpenAI(base_url=served.base_url, api_key=served.key, timeout=SECONDS, max_retries=0) as client:
        yield client
