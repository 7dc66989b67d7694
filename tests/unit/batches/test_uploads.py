"""Uploaded files are stored in pieces, belong to their organization, and are deleted after thirty days."""

import pytest

from penstock.batches import uploads
from penstock.errors import InvalidRequest, NotFound
from penstock.fields import UploadedFile
from tests.gateway import OpenGateway


async def test_a_file_is_read_as_it_was_sent(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        data = bytes(range(256)) * 5000
        row = await uploads.store_upload(running.gateway, running.caller.org_id, UploadedFile(data, "a.jsonl"))
        assert len(await running.rows("SELECT number FROM upload_pieces")) == 3
        assert await uploads.read_upload(running.gateway, row) == data
        other = await running.create_caller_in_new_org()
        with pytest.raises(NotFound):
            await uploads.get_upload(running.gateway, other.org_id, row.id)


async def test_a_file_is_deleted_when_it_has_been_kept_for_thirty_days(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        row = await uploads.store_upload(running.gateway, running.caller.org_id, UploadedFile(b"x", "a.jsonl"))
        await uploads.delete_expired(running.gateway)
        assert await uploads.get_upload(running.gateway, running.caller.org_id, row.id) == row
        running.clock.advance(uploads.KEPT_DAYS * 86_400 + 1)
        with pytest.raises(NotFound):
            await uploads.get_upload(running.gateway, running.caller.org_id, row.id)
        await uploads.delete_expired(running.gateway)
        assert not await running.rows("SELECT number FROM upload_pieces")


async def test_an_empty_file_is_refused_and_any_where_no_payloads_are_stored(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with pytest.raises(InvalidRequest, match="empty"):
            await uploads.store_upload(running.gateway, running.caller.org_id, UploadedFile(b"", "a.jsonl"))
    async with open_gateway(works=False, payloads="none") as running:
        with pytest.raises(InvalidRequest, match="payloads"):
            await uploads.store_upload(running.gateway, running.caller.org_id, UploadedFile(b"x", "a.jsonl"))
