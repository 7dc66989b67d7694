"""Whether the library of the extra `mcp` is installed."""

import importlib.util

HAS_MCP = importlib.util.find_spec("mcp") is not None
