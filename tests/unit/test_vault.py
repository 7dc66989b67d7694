"""The master secret is kept safe, and keys derived from it seal, sign and digest."""

import hmac
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.settings import Settings
from penstock.vault import HmacKey, SealBroken, SecretRefused, Vault, open_vault, rotate_secret

ONE, TWO = "a" * 43, "b" * 43


def with_flipped_bit(data: bytes, index: int) -> bytes:
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]


# ---------------------------------------------------------------------------------------------------------- the secret


def test_first_start_creates_a_secret_only_its_owner_can_read(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "new" / "data")
    first = open_vault(settings)
    path = settings.data / "secret.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_text().strip()) >= 43
    assert [item.name for item in settings.data.iterdir()] == ["secret.key"]
    assert open_vault(settings).fingerprint == first.fingerprint


def test_processes_that_start_together_agree_on_one_secret(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    with ThreadPoolExecutor(16) as threads:
        vaults = list(threads.map(lambda _: open_vault(settings), range(64)))
    assert len({vault.fingerprint for vault in vaults}) == 1
    assert [item.name for item in tmp_path.iterdir()] == ["secret.key"]


def test_the_settings_come_before_the_file(tmp_path: Path) -> None:
    vault = open_vault(Settings(data=tmp_path, secret=ONE))
    assert vault.fingerprint == Vault(ONE).fingerprint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_file_with_access_for_others_is_refused(tmp_path: Path, mode: int) -> None:
    settings = Settings(data=tmp_path)
    open_vault(settings)
    path = tmp_path / "secret.key"
    path.chmod(mode)
    with pytest.raises(SecretRefused, match=f"{path}: .*chmod 600"):
        open_vault(settings)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no master secret"),
        (b" \n", "no master secret"),
        (b"short\n", "at least 32"),
        (ONE.encode() + b"\nshort\n", "at least 32"),
        (b"\xff" * 64, "not text"),
    ],
)
def test_an_empty_or_short_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SecretRefused, match=words) as caught:
        open_vault(Settings(data=tmp_path))
    assert str(path) in str(caught.value)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.key").mkdir()
    with pytest.raises(SecretRefused, match="cannot be read"):
        open_vault(Settings(data=tmp_path))


def test_a_new_secret_leaves_the_old_ones_working(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    before = open_vault(settings)
    sealed, signature = before.seal(b"token"), before.sign("text")
    rotate_secret(settings)
    after = open_vault(settings)
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600
    assert after.open(sealed) == b"token"
    assert after.verify("text", signature)
    assert after.digest_key("k") == before.digest_key("k")
    assert after.fingerprint == before.fingerprint
    # The old secret alone can neither open nor sign anything new.
    assert (after.is_current(sealed), after.is_current(after.seal(b""))) == (False, True)
    assert not before.verify("text", after.sign("text"))
    with pytest.raises(SealBroken):
        before.open(after.seal(b"token"))


def test_a_secret_from_the_settings_is_rotated_there(tmp_path: Path) -> None:
    with pytest.raises(SecretRefused, match="settings"):
        rotate_secret(Settings(data=tmp_path, secret=ONE))
    both = open_vault(Settings(data=tmp_path, secret=f"{TWO} {ONE}"))
    assert both.open(Vault(ONE).seal(b"x")) == b"x"


# ------------------------------------------------------------------------------------------------------------- sealing


@given(st.binary(max_size=100), st.text(max_size=20))
def test_sealed_data_opens(data: bytes, context: str) -> None:
    vault = Vault(ONE)
    assert vault.open(vault.seal(data, context), context) == data


def test_sealing_twice_gives_different_bytes_without_the_data() -> None:
    vault = Vault(ONE)
    first, second = vault.seal(b"whsec_canary"), vault.seal(b"whsec_canary")
    assert first != second
    assert b"canary" not in first


def test_any_change_breaks_the_seal() -> None:
    vault = Vault(ONE)
    sealed = vault.seal(b"token", "org_a")
    for index in range(len(sealed)):
        with pytest.raises(SealBroken):
            vault.open(with_flipped_bit(sealed, index), "org_a")
        with pytest.raises(SealBroken):
            vault.open(sealed[:index], "org_a")
    with pytest.raises(SealBroken):  # moved to another row
        vault.open(sealed, "org_b")
    with pytest.raises(SealBroken):
        Vault(TWO).open(sealed, "org_a")


# ------------------------------------------------------------------------------------------------- signing and digests


def test_only_the_signed_text_verifies() -> None:
    vault = Vault(ONE)
    signature = vault.sign("GET\n/m/1\n99")
    assert vault.verify("GET\n/m/1\n99", signature)
    assert signature.replace("-", "a").replace("_", "a").isalnum()
    assert not vault.verify("GET\n/m/1\n98", signature)
    assert not Vault(TWO).verify("GET\n/m/1\n99", signature)
    for wrong in ("", "x", signature[:-1], signature + "=", signature.swapcase(), "é" * 43, "\udc80" * 43):
        assert not vault.verify("GET\n/m/1\n99", wrong)


def test_each_purpose_has_its_own_key() -> None:
    vault = Vault(ONE)
    assert vault.sign("x") != Vault(TWO).sign("x")
    assert vault.digest_key("x") != Vault(TWO).digest_key("x")
    assert vault.digest_key("x").hex() not in (vault.sign("x"), vault.fingerprint)
    assert len(vault.digest_key("x")) == 32


def test_derived_values_never_change() -> None:
    """A release that derived other keys could use no stored API key and no stored secret."""
    vault = Vault(ONE)
    assert vault.digest_key("pk_x").hex() == "8b9a15e8bc43c646256390aa1de3ec75810277126aa027a20763800d9da70cc8"
    assert vault.sign("x") == "b0OCWZ7jLkpBXvO4d-JJyg--qGJkcvv0QNH76JHQ9jg"
    assert vault.fingerprint == "b78c9ecc2123136f10625cabdb03d736"
    assert (
        vault.open(bytes.fromhex("472eb6f36ba1c0313e2a88b9ef296a37b416906bb75f2c7013c242bdfcf3efdcf8cb062143"), "org")
        == b"token"
    )


@given(
    st.binary(max_size=64) | st.binary(min_size=65, max_size=130),  # longer ones are hashed first
    st.lists(st.binary(max_size=200), min_size=1, max_size=3),
)
def test_a_key_for_many_digests_gives_those_of_the_standard_library(key: bytes, messages: list[bytes]) -> None:
    many = HmacKey(key)
    assert [many.digest(message) for message in messages] == [
        hmac.digest(key, message, "sha256") for message in messages
    ]
