"""The rows of stored files, as they are read back on each database."""

from hashlib import sha256

import msgspec

from penstock.media.rows import get_media, list_all_files, list_examples, list_file_digests, list_media, list_outputs
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway


async def test_an_output_is_read_in_each_selection(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        store = running.gateway.store
        org_id = running.caller.org_id
        now_ms = running.clock.now_ms()
        await running.image()
        [request] = await running.records()
        [file] = await list_media(store, request["id"], org_id)
        assert (file.org_id, file.role, file.position, file.request_id) == (org_id, "output", 0, request["id"])
        assert (file.content_type, file.width, file.height) == ("image/png", 64, 64)
        assert (file.size_bytes, file.sha256) == (len(png(64, 64)), sha256(png(64, 64)).digest())
        assert now_ms <= file.created_at_ms < file.expires_at_ms
        assert await get_media(store, file.id) == file
        assert await get_media(store, "med_other") is None
        [output] = await list_outputs(store, [request["id"], "req_other"], org_id, now_ms)
        [example] = await list_examples(store, ["image-1", "m"], org_id, now_ms)
        [stored] = await list_all_files(store)
        [digest] = await list_file_digests(store)
        assert example.model == "image-1"
        columns = msgspec.structs.asdict(file)
        for row in (output, example, stored, digest):
            same = {name: value for name, value in msgspec.structs.asdict(row).items() if name != "model"}
            assert same == {name: columns[name] for name in same}
        assert await list_outputs(store, [request["id"]], org_id, file.expires_at_ms) == []
