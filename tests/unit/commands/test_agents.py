"""The tools of agents are tested through the official client, in test_mcp.py; here: which files they may read."""

import pytest

from tests.unit.commands.test_mcp import HAS_MCP

pytestmark = [pytest.mark.clients, pytest.mark.skipif(not HAS_MCP, reason="needs the extra `mcp`")]


def test_files_are_read_for_agents_on_this_machine_only() -> None:
    from penstock.commands.agents import _Tools
    from penstock.commands.gateway_client import CallFailed, GatewayClient

    tools = _Tools(GatewayClient("http://127.0.0.1:1", "none"), reads_files=False)
    with pytest.raises(CallFailed, match="must be an HTTPS URL or a data URI"):
        tools._inputs(["/etc/hostname"])
