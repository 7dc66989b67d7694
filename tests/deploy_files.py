"""What compose.yaml and the Dockerfile say, for tests that check or run it."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent


def compose_services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return services


def image_environment() -> dict[str, str]:
    """The variables of ENV in the last stage of the Dockerfile."""
    block = (ROOT / "Dockerfile").read_text().rpartition("\nENV ")[2].replace("\\\n", " ").partition("\n")[0]
    return dict(pair.split("=", 1) for pair in block.split())
