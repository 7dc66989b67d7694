"""Which models an account serves."""

from penstock.upstream.vendor_account import VendorAccount


def test_an_account_serves_the_models_it_is_limited_to_while_it_is_on() -> None:
    account = VendorAccount("acc_1", "fal", "eu", "secret", models=("flux-*", "kling-3"))
    assert [account.serves(model) for model in ("flux-2", "kling-3", "kling-4")] == [True, True, False]
    account.models = None
    assert account.serves("kling-4")
    for status in ("off", "draining"):
        account.status = status
        assert not account.serves("kling-4")


def test_the_credential_is_not_in_its_text() -> None:
    assert "secret" not in repr(VendorAccount("acc_1", "fal", "eu", "secret"))
