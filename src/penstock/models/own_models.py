"""Workflows and checkpoints of an operator's own, described in penstock.toml, as models of a known provider."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from penstock.providers.live import Underivable
from penstock.providers.spec import Model, OwnModel, Provider
from penstock.typed_config import Misconfigured

_WORKFLOW_BYTES_MAX = 4 * 2**20


def own_models(where: str, provider: Provider, own: OwnModel) -> tuple[Model, ...]:
    """The models that a provider makes of what its operator has. Raises Misconfigured with the provider's reason."""
    if provider.own_models is None:
        raise Misconfigured(f"{where}: {provider.name} takes no workflow, checkpoint or loras")
    try:
        return provider.own_models(own)
    except Underivable as problem:
        raise Misconfigured(f"{where}: {problem}") from None


def read_workflow(where: str, folder: Path, name: str) -> Mapping[str, Any]:
    """Read an exported workflow: a complete path, or a file in the data folder. Raises Misconfigured."""
    path = folder / name
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise Misconfigured(f"{where}.workflow: {path} cannot be read: {problem.strerror}") from None
    if len(text) > _WORKFLOW_BYTES_MAX:
        raise Misconfigured(f"{where}.workflow: {path} is larger than {_WORKFLOW_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as problem:
        raise Misconfigured(f"{where}.workflow: {path} is not a JSON object: {problem}") from None
