"""Encrypt stored secrets, sign URLs, and digest API keys, with keys derived from a master secret."""

import hashlib
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

from penstock.durability import sync_folder
from penstock.settings import Settings

SECRET_FILE = "secret.key"  # noqa: S105 (a file's name)
_SECRET_CHARS_MIN = 32
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12
_HMAC_BLOCK_BYTES = 64
_REMEDY = (
    "Put secret.key back into the data folder, or give every process that shares the database the same PENSTOCK_SECRET."
)


class SecretRefused(ValueError):
    """The master secret cannot be used; the message says where it is and what to do."""


class SealBroken(Exception):
    """The sealed bytes were sealed with another secret or context, or were changed."""


class HmacKey:
    """A key for many digests by HMAC-SHA256, as RFC 2104 defines it.

    What depends on the key alone is hashed once. `hmac.digest` has OpenSSL prepare everything for each message, which
    takes two to three times as long.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        if len(key) > _HMAC_BLOCK_BYTES:
            key = hashlib.sha256(key).digest()
        block = key.ljust(_HMAC_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def digest(self, message: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys derived from one master secret, each for one purpose."""

    id: bytes
    sealing: AESGCM
    signing: HmacKey

    @classmethod
    def of(cls, secret: str) -> "_Keys":
        sealing = AESGCM(_derive(secret, "sealing"))
        return cls(_derive(secret, "key id")[:_KEY_ID_BYTES], sealing, HmacKey(_derive(secret, "signing")))


class Vault:
    """Has one or more master secrets, newest first. The first seals and signs; all of them open and verify.

    API keys are digested with the last, oldest secret: a new master secret would otherwise invalidate every API key.
    That is no weakness, because an API key has 256 random bits.
    """

    def __init__(self, *master: str) -> None:
        if not master:
            raise SecretRefused("There is no master secret.")
        for secret in master:
            if len(secret) < _SECRET_CHARS_MIN:
                raise SecretRefused(f"A master secret must have at least {_SECRET_CHARS_MIN} characters.")
        self._all = tuple(_Keys.of(secret) for secret in master)
        self._pepper = _derive(master[-1], "api keys")
        self._key_secrets = _derive(master[-1], "secrets of derived api keys")
        self._alert_secret = _derive(master[-1], "signatures of alerts")
        roles = ("content root", "content signer")
        self._content_seeds = tuple((_derive(each, roles[0]), _derive(each, roles[1])) for each in master)
        self.fingerprint = _derive(master[-1], "fingerprint").hex()[:32]
        """Identifies the oldest master secret; safe to store and show."""

    def digest_key(self, api_key: str) -> bytes:
        """The digest that is stored of an API key. A slow hash is not needed: the key has 256 random bits."""
        return hmac.digest(self._pepper, api_key.encode(), "sha256")

    def derive_key_secret(self, key_id: str) -> str:
        """Return the secret part of the API key with this id, for keys that are derived and not random."""
        return urlsafe_b64encode(hmac.digest(self._key_secrets, key_id.encode(), "sha256")).decode().rstrip("=")

    def derive_alert_secret(self) -> bytes:
        """Return the secret that signs alerts to the operator; a new master secret does not change it."""
        return self._alert_secret

    def derive_content_seeds(self) -> tuple[tuple[bytes, bytes], ...]:
        """Return, newest first, what the certificates that sign outputs are made of: a root's and a signer's.

        Every process with the same master secrets makes the same certificates, so none have to be stored.
        """
        return self._content_seeds

    def seal(self, data: bytes, context: str = "") -> bytes:
        """Encrypt data for storage. Opening it needs the same `context`, such as the id of its row."""
        first = self._all[0]
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return first.id + nonce + first.sealing.encrypt(nonce, data, context.encode())

    def open(self, sealed: bytes, context: str = "") -> bytes:
        """Decrypt what `seal` returned. Raises SealBroken when that is not possible."""
        key_id, rest = sealed[:_KEY_ID_BYTES], sealed[_KEY_ID_BYTES:]
        for keys in self._all:
            if keys.id == key_id:
                with suppress(InvalidTag, ValueError):
                    return keys.sealing.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context.encode())
        raise SealBroken("A stored secret cannot be opened with this master secret.")

    def is_current(self, sealed: bytes) -> bool:
        """False if the data was sealed with an older master secret."""
        return sealed.startswith(self._all[0].id)

    def sign(self, text: str) -> str:
        """A signature of a text, in characters that need no escaping in a URL."""
        return _signature(self._all[0].signing, text)

    def verify(self, text: str, signature: str) -> bool:
        """Whether `sign` returned this signature for the text, with any of the master secrets."""
        given = signature.encode(errors="replace")
        return any(hmac.compare_digest(_signature(keys.signing, text).encode(), given) for keys in self._all)


def open_vault(settings: Settings, *, fingerprint: str | None = None) -> Vault:
    """Open the vault with the secret of the settings or else of the data folder.

    `fingerprint` is that of the secret with which the database was written; without one, a missing file is created.
    Raises SecretRefused when the secret is missing, too short or not that of the database, or its file cannot be used.
    """
    vault = Vault(*settings.secret.split()) if settings.secret else _open_file(settings, create=fingerprint is None)
    if fingerprint not in (None, vault.fingerprint):
        raise SecretRefused(f"The database was written with another master secret. {_REMEDY}")
    return vault


def _open_file(settings: Settings, *, create: bool) -> Vault:
    path = settings.data / SECRET_FILE
    if not path.exists():
        if not create:
            raise SecretRefused(f"{path} is missing, and the database was written with it. {_REMEDY}")
        _create(path)
    try:
        return Vault(*_read(path))
    except SecretRefused as problem:
        raise SecretRefused(f"{path}: {problem}") from None


def rotate_secret(settings: Settings) -> None:
    """Add a new master secret before the existing ones in the data folder. Processes use it after a restart.

    Raises SecretRefused when the secret comes from the settings.
    """
    path = settings.data / SECRET_FILE
    if settings.secret:
        raise SecretRefused("The master secret comes from the settings: add the new one there, before the old one.")
    _replace(path, "\n".join([secrets.token_urlsafe(32), *_read(path)]) + "\n")


def _derive(secret: str, purpose: str) -> bytes:
    return HKDF(SHA256(), 32, salt=b"penstock", info=purpose.encode()).derive(secret.encode())


def _signature(key: HmacKey, text: str) -> str:
    return urlsafe_b64encode(key.digest(text.encode(errors="replace"))).rstrip(b"=").decode()


# ------------------------------------------------------------------------------------------------------------ the file


def _read(path: Path) -> list[str]:
    try:
        with path.open() as file:
            # The mode of the open file: the path may lead to another file by now.
            mode = os.fstat(file.fileno()).st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SecretRefused(f"users other than its owner have access to it; run: chmod 600 {path}")
            return file.read().split()
    except (OSError, UnicodeDecodeError) as problem:
        raise SecretRefused(f"it cannot be read: {getattr(problem, 'strerror', None) or 'not text'}") from problem


def _create(path: Path) -> None:
    """Create the file with a new secret, atomically. If another process creates it first, its file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = _write_draft(path, secrets.token_urlsafe(32) + "\n")
    try:
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    sync_folder(path.parent)


def _replace(path: Path, text: str) -> None:
    _write_draft(path, text).replace(path)
    sync_folder(path.parent)


def _write_draft(path: Path, text: str) -> Path:
    """Write a text to a new file beside `path`, and to the disk."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    return draft
