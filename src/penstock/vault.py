"""Secrets at rest: the master key, derived keys, sealing and signing."""

import hmac
import os
import secrets
import stat
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from penstock.settings import Settings

SECRET_FILE = "secret.key"  # noqa: S105 (a file's name)
_LEAST_CHARS = 32
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12


class SecretRefused(ValueError):
    """The master secret cannot be used as it is; the message says where it is and what to do."""


class SealBroken(Exception):
    """Sealed bytes that this vault did not seal, or that were changed or moved since."""


@dataclass(frozen=True, slots=True)
class _Keys:
    """What is derived from one master secret, each key for one purpose."""

    id: bytes
    sealing: AESGCM
    signing: bytes

    @classmethod
    def of(cls, secret: str) -> "_Keys":
        sealing = AESGCM(_derive(secret, "sealing"))
        return cls(_derive(secret, "key id")[:_KEY_ID_BYTES], sealing, _derive(secret, "signing"))


class Vault:
    """Holds one or more master secrets: the first seals and signs, all of them open and verify.

    Digests of API keys come from the last, which is the oldest. What they guard is 256 random bits, so their age costs
    nothing, and a new secret does not turn away every key that was ever given out.
    """

    def __init__(self, *master: str) -> None:
        if not master:
            raise SecretRefused("There is no master secret.")
        for secret in master:
            if len(secret) < _LEAST_CHARS:
                raise SecretRefused(f"A master secret must have at least {_LEAST_CHARS} characters.")
        self._all = tuple(_Keys.of(secret) for secret in master)
        self._pepper = _derive(master[-1], "api keys")
        self.fingerprint = _derive(master[-1], "fingerprint").hex()[:32]
        """Tells one installation's secret from another's; safe to store and show."""

    def digest_key(self, api_key: str) -> bytes:
        """What is stored of an API key. A slow hash would add nothing to 256 random bits but a way to wear us out."""
        return hmac.digest(self._pepper, api_key.encode(), "sha256")

    def seal(self, data: bytes, context: str = "") -> bytes:
        """Encrypt for storing; only the same `context`, such as the row's id, opens it."""
        first = self._all[0]
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return first.id + nonce + first.sealing.encrypt(nonce, data, context.encode())

    def open(self, sealed: bytes, context: str = "") -> bytes:
        key_id, rest = sealed[:_KEY_ID_BYTES], sealed[_KEY_ID_BYTES:]
        for keys in self._all:
            if keys.id == key_id:
                with suppress(InvalidTag, ValueError):
                    return keys.sealing.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context.encode())
        raise SealBroken("A stored secret cannot be opened with this master secret.")

    def is_current(self, sealed: bytes) -> bool:
        """False for what an older secret sealed."""
        return sealed.startswith(self._all[0].id)

    def sign(self, text: str) -> str:
        """A signature for addresses and cookies, in characters that need no escaping there."""
        return _signature(self._all[0].signing, text)

    def verify(self, text: str, signature: str) -> bool:
        given = signature.encode(errors="replace")
        return any(hmac.compare_digest(_signature(keys.signing, text).encode(), given) for keys in self._all)


def open_vault(settings: Settings) -> Vault:
    """The vault of this installation. Without a secret in the settings, one is kept in the data folder."""
    if settings.secret:
        return Vault(*settings.secret.split())
    path = settings.data / SECRET_FILE
    if not path.exists():
        _create(path)
    try:
        return Vault(*_read(path))
    except SecretRefused as problem:
        raise SecretRefused(f"{path}: {problem}") from None


def rotate_secret(settings: Settings) -> None:
    """Put a new master secret before the ones there are; processes take it up when they are started again."""
    path = settings.data / SECRET_FILE
    if settings.secret:
        raise SecretRefused("The master secret comes from the settings: write the new one before the old one there.")
    _replace(path, "\n".join([secrets.token_urlsafe(32), *_read(path)]) + "\n")


def _derive(secret: str, purpose: str) -> bytes:
    return HKDF(SHA256(), 32, salt=b"penstock", info=purpose.encode()).derive(secret.encode())


def _signature(key: bytes, text: str) -> str:
    return urlsafe_b64encode(hmac.digest(key, text.encode(errors="replace"), "sha256")).rstrip(b"=").decode()


# ------------------------------------------------------------------------------------------------------------ the file


def _read(path: Path) -> list[str]:
    try:
        with path.open() as file:
            # Asked of the open file, so that what is judged is what is read.
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SecretRefused(f"others than its owner may use it; run: chmod 600 {path}")
            return file.read().split()
    except (OSError, UnicodeDecodeError) as problem:
        raise SecretRefused(f"it cannot be read: {getattr(problem, 'strerror', None) or 'not text'}") from problem


def _create(path: Path) -> None:
    """Whole or not at all, and once: of several processes that start together, one wins and the others read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = _draft(path, secrets.token_urlsafe(32) + "\n")
    try:
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    _flush(path.parent)


def _replace(path: Path, text: str) -> None:
    _draft(path, text).replace(path)
    _flush(path.parent)


def _draft(path: Path, text: str) -> Path:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    return draft


def _flush(folder: Path) -> None:
    """A name in a folder is durable only when the folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
