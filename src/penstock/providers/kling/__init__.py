"""Kling: its own videos, with a plain key or with the older pair `access:secret`, which signs a token for each call."""

from collections.abc import Mapping

from penstock.providers import jwt
from penstock.providers.kling import omni, tasks, videos
from penstock.providers.kling.videos import FAILURE_KINDS
from penstock.providers.spec import FailureKind, Provider, Reply, bearer


def error_message(reply: Reply) -> str | None:
    return str(reply.json["message"])


def failure_kind(reply: Reply) -> FailureKind | None:
    return FAILURE_KINDS.get(reply.json["code"])


def auth(key: str) -> Mapping[str, str]:
    """The header for a plain key, or for a token signed with the pair `access:secret`."""
    access, _, secret = key.partition(":")
    return bearer(sign_token(access, secret, jwt.now_seconds()) if secret else key)


def sign_token(access: str, secret: str, now: int) -> str:
    """A token that is valid for half an hour; it begins five seconds ago, because clocks differ."""
    return jwt.sign_hs256({"iss": access, "exp": now + 1800, "nbf": now - 5}, secret)


PROVIDER = Provider(
    slug="kling",
    name="Kling",
    docs="https://klingai.com/document-api",
    base_url="https://api-singapore.klingai.com",
    key_env="KLING_API_KEY",
    callback_key_env="KLING_WEBHOOK_SECRET",  # if the console shows one; otherwise callbacks are not signed
    auth=auth,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(*videos.MODELS, *omni.MODELS, *tasks.MODELS),
)
