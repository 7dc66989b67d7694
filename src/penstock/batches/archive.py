"""The results of a batch as a zip, written while it is sent: no file is in memory or copied to the disk."""

import re
import zipfile
from collections.abc import AsyncIterator
from typing import IO, cast

from penstock.batches.lines import CHATS, MODEL_RESPONSES
from penstock.batches.records import BatchRecord, EndedRow
from penstock.batches.results import ended_rows, result_line, row_result
from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import get_generation
from penstock.long_bodies.json_encoding import encode_with_files
from penstock.schema import Output

RESULTS = "results.jsonl"
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_NAME_CHARS = 80
_EXTENSIONS = {"image/jpeg": "jpg", "image/svg+xml": "svg", "video/quicktime": "mov"}


class _Sink:
    """What a ZipFile writes to, and what was written and not yet taken. It cannot seek."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits anywhere else."""

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


async def results_zip(gateway: Gateway, batch: BatchRecord, base_url: str) -> AsyncIterator[bytes]:
    """The files of all rows, named by number and `custom_id`; last, `results.jsonl` with the lines of `results_jsonl`.

    Of a chat the file is its response. A file that has expired is left out.
    """
    sink = _Sink()
    with zipfile.ZipFile(cast(IO[bytes], sink), "w") as archive:
        async for row in ended_rows(gateway, batch):
            async for data in _add_files(gateway, batch, row, archive, base_url):
                yield sink.take() or data
            yield sink.take()
        with archive.open(zipfile.ZipInfo(RESULTS), "w", force_zip64=True) as entry:
            async for row in ended_rows(gateway, batch):
                for piece in result_line(batch, row, await row_result(gateway, batch.org_id, row, base_url)):
                    entry.write(piece)
                yield sink.take()
    yield sink.take()


async def _add_files(
    gateway: Gateway, batch: BatchRecord, row: EndedRow, archive: zipfile.ZipFile, base_url: str
) -> AsyncIterator[bytes]:
    """Add the files of a row to the archive; yields nothing in between, so that what was written can be sent."""
    if row.status != "completed" or row.request_id is None:
        return
    if row.endpoint in (CHATS, MODEL_RESPONSES):
        with archive.open(zipfile.ZipInfo(file_name(row, "json")), "w", force_zip64=True) as entry:
            for piece in encode_with_files(await row_result(gateway, batch.org_id, row, base_url)):
                entry.write(piece)
        return
    outputs = await _outputs(gateway, batch, row.request_id)
    for place, output in enumerate(outputs, 1):
        chunks = gateway.media.read_chunks(output.media_id, 0, output.size_bytes)
        try:
            first = await anext(chunks, b"")
        except NotFound:
            continue
        name = file_name(row, extension(output.content_type), place if len(outputs) > 1 else 0)
        with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
            entry.write(first)
            yield b""
            async for chunk in chunks:
                entry.write(chunk)
                yield b""


async def _outputs(gateway: Gateway, batch: BatchRecord, request_id: str) -> tuple[Output, ...]:
    generation = await get_generation(gateway.store, request_id, batch.org_id)
    result = generation.decode_result() if generation else None
    return result.outputs if result else ()


def file_name(row: EndedRow, ending: str, place: int = 0) -> str:
    """The name of a file: by the number of its row and what can be in a name of its `custom_id`."""
    words = _NOT_IN_NAMES.sub("-", row.custom_id).strip(".-")[:_NAME_CHARS]
    name = f"{row.number:06}" + (f"-{words}" if words and words != str(row.number) else "")
    return f"{name}-{place}.{ending}" if place else f"{name}.{ending}"


def extension(content_type: str) -> str:
    """What the name of a file of this type ends with."""
    return _EXTENSIONS.get(content_type, _NOT_IN_NAMES.sub("", content_type.rpartition("/")[2]) or "bin")
