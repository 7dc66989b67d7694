"""The queries of the Grafana dashboard."""

import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "penstock.json").read_text())


def queries() -> Iterator[tuple[str, str, str]]:
    """The title, the expression and the legend of each query."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]
