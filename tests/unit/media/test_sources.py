"""What callers send is read, wherever it is; test_transfer.py has the inputs of generations."""

import pytest

from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.values import OrgId
from tests.gateway import OpenGateway, sqlite_only

ORG = OrgId("org_1")

pytestmark = sqlite_only


async def test_files_and_data_uris_are_read(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        sources = running.gateway.media_transfer.sources
        assert await sources.read(UploadedFile(b"abc"), "file", 10, ORG) == b"abc"
        assert await sources.read("data:text/plain;base64,YWJj", "file", 10, ORG) == b"abc"
        with pytest.raises(InvalidRequest, match="`file` has a data URI that is not base64") as problem:
            await sources.read("data:text/plain;base64,Y!", "file", 10, ORG)
        assert problem.value.param == "file"


async def test_base64_with_other_characters_is_read_unless_it_must_be_strict(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        sources = running.gateway.media_transfer.sources
        assert await sources.decode("YW\nJj") == b"abc"
        with pytest.raises(ValueError, match="base64"):
            await sources.decode("YW Jj!", strict=True)
