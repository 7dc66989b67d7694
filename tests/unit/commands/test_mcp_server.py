"""The tools of agents are tested through the official client, in test_mcp.py; here: which files they may read, and
files that cannot be decoded.
"""

import base64
import io

import pytest
from PIL import Image

from penstock.imaging.workers import WorkerPool
from tests.fake_providers.scripted import png
from tests.unit.commands.mcp_library import HAS_MCP

pytestmark = [pytest.mark.clients, pytest.mark.skipif(not HAS_MCP, reason="needs the extra `mcp`")]


def test_files_are_read_for_agents_on_this_machine_only() -> None:
    from penstock.client.failures import CallFailed
    from penstock.commands.gateway_client import GatewayClient
    from penstock.commands.mcp_server import _Tools

    tools = _Tools(GatewayClient("http://127.0.0.1:1", "none"), reads_files=False)
    with pytest.raises(CallFailed, match="must be an HTTPS URL or a data URI"):
        tools._inputs(["/etc/hostname"])


@pytest.mark.parametrize(("content", "blocks"), [(png(900, 600), 1), (png(900, 600)[:200], 0)], ids=["whole", "broken"])
async def test_images_are_decoded_in_a_child_process(content: bytes, blocks: int) -> None:
    from penstock.commands.mcp_server import _preview

    async with WorkerPool() as pool:
        previews = await _preview(pool, content)
        assert len(pool.pids) == 1
    assert len(previews) == blocks
    for preview in previews:
        assert max(Image.open(io.BytesIO(base64.b64decode(preview.data))).size) == 384
