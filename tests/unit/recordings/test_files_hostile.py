"""Recording files from strangers: what is too large or malformed is refused as an invalid request, never an error."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidRequest
from penstock.imaging import svg
from penstock.recordings import files
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, sqlite_only

PNG = png(8, 8)
FILE = {"content_type": "image/png", "data": base64.b64encode(PNG).decode()}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "penstock_recording": 1,
        "id": "rec_" + "0" * 32,
        "kind": "image",
        "task": "image",
        "model": "image-1",
        "recorded_at": "2026-01-01T00:00:00.000Z",
        "duration_ms": 5,
        "request": {"prompt": "a pear"},
        "provider": "lab",
        "provider_name": "Lab",
        "executed_model": "image-1",
        "files": [FILE],
        "standard": "00" * 32,
        "strict": "11" * 32,
        **changes,
    }


def test_the_file_that_the_tests_change_is_accepted() -> None:
    read = files.read_document(document(), {})
    assert read.request == b'{"prompt":"a pear"}'
    assert [stored.data for stored in read.outputs] == [PNG]


@sqlite_only
async def test_a_vector_image_must_be_as_a_gateway_stores_it(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compared with its cleaned form in a child process: this one parses no XML of a stranger."""
    head = b'<svg xmlns="http://www.w3.org/2000/svg">'
    clean = svg.clean(head + b'<path d="M0 0"/></svg>').data
    monkeypatch.delattr("xml.parsers.expat.ParserCreate")
    async with open_gateway(child_processes=True) as running:
        gateway = running.gateway
        imported_ids = []
        for content in (clean, head + b"<script>1</script></svg>", b"<svg", PNG):
            vector = {"content_type": "image/svg+xml", "data": base64.b64encode(content).decode()}
            imported = files.import_recording(
                gateway.store,
                gateway.recordings,
                running.caller.org_id,
                document(files=[FILE, vector]),
                {},
                1,
                pool=gateway.worker_pool,
            )
            if content != clean:
                with pytest.raises(InvalidRequest, match=r"`files\[1\]` is not an SVG as gateways store it"):
                    await imported
                continue
            imported_ids.append(await imported)
        row = await gateway.recordings.get(running.caller.org_id, *imported_ids)
        _, (_, stored) = await gateway.recordings.list_files(row)
        assert await gateway.recordings.read_file(stored) == clean
        assert len(await gateway.recordings.all(running.caller.org_id)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"duration_ms": 2**63},
        {"duration_ms": 10**17},
        {"duration_ms": 24 * 3600 * 1000 + 1},
        {"duration_ms": -1},
        {"seconds": 1e300},
        {"task": "sound"},
        {"task": "video"},
        {"kind": "video", "task": "image"},
        {"model": "m" * 501},
        {"provider_name": "p" * 10**6},
        {"standard": "00" * 31},
        {"strict": "é" * 64},
        {"request": {"prompt": "p" * 70_000}},
        {"files": [{"content_type": "image/png", "data": "é" * 8}]},
        {"files": [{**FILE, "width": 2**63}]},
        {"files": [{**FILE, "revised_prompt": "p" * 10**5}]},
    ],
)
def test_values_out_of_range_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        files.read_document(document(**change), {})
    assert len(caught.value.message) < 1000


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["image", "video", "é", "\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FILES = st.lists(
    st.dictionaries(st.sampled_from(["content_type", "width", "height", "file", "data", "revised_prompt"]), VALUES),
    max_size=3,
)
CHANGES = st.dictionaries(st.sampled_from([*document(), "upstream_id", "seconds"]), VALUES | FILES, max_size=4)


@given(CHANGES | VALUES)
def test_any_json_is_read_or_refused(change: Any) -> None:
    changed = document(**change) if isinstance(change, dict) and change.keys() <= {*document()} else change
    try:
        read = files.read_document(changed, {})
    except InvalidRequest:
        return
    assert 0 <= read.document.duration_ms <= files.LONGEST_DURATION_MS
