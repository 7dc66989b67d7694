"""DashScope's codes say whether a prompt was refused, the account is busy or it cannot be used."""

from penstock.providers.dashscope_errors import code_kind


def test_codes() -> None:
    kinds = {
        "DataInspectionFailed": "refused",
        "InvalidParameter.DataInspection": "refused",
        "IPInfringementSuspect": "refused",
        "Throttling.RateQuota": "busy",
        "Arrearage": "broken",
        "AccessDenied.Unpurchased": "broken",
        "InternalError.Timeout": "broken",
        "InvalidParameter": None,
    }
    assert {code: code_kind(code) for code in kinds} == kinds
