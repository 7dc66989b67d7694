"""How DashScope reports failures, of videos and of images."""

from penstock.providers.spec import FailureKind, Reply


def code_kind(code: str) -> FailureKind | None:
    if "DataInspection" in code or code == "IPInfringementSuspect":
        return "refused"
    if code.startswith("Throttling"):
        return "busy"
    return "broken" if code.startswith(("Arrearage", "AccessDenied", "InternalError")) else None


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return code_kind(reply.json["code"])
