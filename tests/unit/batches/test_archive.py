"""The zip of a batch: every file under a name that says which row made it, and the lines of the results."""

import io
import json
import zipfile

from penstock.batches.archive import extension, file_name, results_zip
from penstock.batches.records import EndedRow
from tests.fake_providers import faults
from tests.gateway import OpenGateway
from tests.unit.batches.batch_calls import CHAT, batch, create, image_rows, wait_for


def row(number: int, custom_id: str) -> EndedRow:
    return EndedRow(
        number=number, custom_id=custom_id, endpoint="", status="completed", request_id=None, cost=0,
        error_code=None, error_message=None,
    )  # fmt: skip


async def test_the_zip_has_each_file_and_the_lines_of_the_results(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.images.next(faults.blocked)
        several = {"custom_id": "../two pears", "body": {**image_rows(1)[0], "n": 2}}
        rows = [*image_rows(2), several, {"url": "/v1/chat/completions", "custom_id": "c", "body": CHAT}]
        made = await create(running, requests=rows, concurrency=1)
        await wait_for(running, made["id"])
        found = await batch(running, made["id"])
        pieces = [piece async for piece in results_zip(running.gateway, found, "http://gateway.test")]
        with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
            assert names == [
                "000002.png", "000003-two-pears-1.png", "000003-two-pears-2.png", "000004-c.json", "results.jsonl",
            ]  # fmt: skip
            assert archive.read("000002.png").startswith(b"\x89PNG")
            lines = [json.loads(line) for line in archive.read("results.jsonl").splitlines()]
        assert [bool(line["error"]) for line in lines] == [True, False, False, False]


def test_names_are_safe_on_every_system() -> None:
    assert file_name(row(7, "7"), "png") == "000007.png"
    assert file_name(row(7, "../../etc/passwd"), "png") == "000007-etc-passwd.png"
    assert file_name(row(7, "..."), "png") == "000007.png"
    assert (extension("image/jpeg"), extension("video/mp4"), extension("")) == ("jpg", "mp4", "bin")
