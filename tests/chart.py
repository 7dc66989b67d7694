"""Compare what helm makes of the chart with the manifests: `python -m tests.chart RENDERED`, run by `make test-deploy`.

By default both must be the same, but for names, labels and annotations.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from tests.deploy_files import ROOT

MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
OWN = ("name", "labels", "annotations", "selector", "matchLabels", "imagePullPolicy")
NAMED = ("configMapRef", "secretRef", "containers", "ports", "volumes", "volumeMounts", "env")


def objects(paths: Iterable[Path]) -> dict[tuple[str, str], Any]:
    """Each object by its kind and the part that it is of."""
    found = [each for path in paths for each in yaml.safe_load_all(path.read_text()) if each]
    return {(each["kind"], each["metadata"]["name"].removeprefix("penstock-")): comparable(each) for each in found}


def comparable(value: Any, under: str = "") -> Any:
    """A value without what a chart names by itself. Names inside of a pod stay."""
    if isinstance(value, dict):
        left_out = OWN[1:] if under in NAMED else OWN
        return {name: comparable(each, name) for name, each in value.items() if name not in left_out}
    if isinstance(value, list):
        return [comparable(each, under) for each in value]
    return value


def main(rendered: str) -> int:
    chart, manifests = objects([Path(rendered)]), objects(MANIFESTS)
    differing = sorted(key for key in chart.keys() | manifests.keys() if chart.get(key) != manifests.get(key))
    for key in differing:
        sys.stderr.write(f"{key}:\n  chart     {chart.get(key)}\n  manifests {manifests.get(key)}\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
