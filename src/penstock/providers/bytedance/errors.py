"""ModelArk's error codes."""

from collections.abc import Mapping
from typing import Any

from penstock.providers.spec import FailureKind, Reply


def failure_kind(reply: Reply) -> FailureKind | None:
    return error_kind(reply.json["error"])


def error_kind(error: Mapping[str, Any]) -> FailureKind | None:
    """`refused` for `InputTextSensitiveContentDetected`, `OutputVideoRiskDetection` and about a dozen more codes."""
    code = str(error.get("code"))
    is_refusal = any(part in code for part in ("SensitiveContent", "RiskDetection", "PolicyViolation"))
    return "refused" if is_refusal else None
