"""Amazon Bedrock: AWS's own client against the fake provider, then the gateway."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from structlog.testing import capture_logs

from penstock import package_extras
from penstock.errors import ModelNotFound
from penstock.providers import bedrock
from penstock.providers.bedrock.credentials import CHAIN
from penstock.providers.spec import HttpRequest, NotSigned
from tests.fake_providers.bedrock import ACCESS_KEY, FILTERED, Bedrock
from tests.fake_providers.scripted import KEY, KEY_ENV
from tests.fake_providers.server import responds, serve_in_thread
from tests.gateway import Installation, OpenGateway
from tests.providers.calls import IMAGE_URI, MASK_URI, create_image, edit_image, gateway_for

CORE = "stability.stable-image-core-v1:1"
ACCOUNT = f"{ACCESS_KEY}:{KEY}"  # the keys of an AWS account

# ------------------------------------------------------------------------------------------------------ its own client


@pytest.fixture
def provider() -> Iterator[Bedrock]:
    with serve_in_thread(Bedrock()) as provider:
        yield provider


def opened(provider: Bedrock, secret: str = KEY) -> Any:
    session = botocore.session.Session()
    session.set_credentials(ACCESS_KEY, secret)
    once = Config(retries={"max_attempts": 0})
    return session.create_client("bedrock-runtime", region_name="us-west-2", endpoint_url=provider.url, config=once)


def test_client_creates_images(provider: Bedrock) -> None:
    with closing(opened(provider)) as client:
        made = client.invoke_model(
            modelId=CORE, body=json.dumps({"prompt": "a fox", "aspect_ratio": "16:9"}), contentType="application/json"
        )
        assert json.loads(made["body"].read())["finish_reasons"] == [None]
        with pytest.raises(ClientError, match="ValidationException"):
            client.invoke_model(
                modelId=CORE, body=json.dumps({"prompt": "a fox", "width": 512}), contentType="application/json"
            )


def test_client_with_another_secret_is_refused(provider: Bedrock) -> None:
    with closing(opened(provider, "another")) as client, pytest.raises(ClientError, match="security token"):
        client.invoke_model(modelId=CORE, body="{}", contentType="application/json")


# ---------------------------------------------------------------------------------------------------------- credentials


def test_a_signature_has_the_region_of_the_host_and_the_token_of_the_session() -> None:
    def signed(host: str, key: str) -> dict[str, str]:
        request = HttpRequest("POST", f"https://{host}/model/x/invoke", {"content-type": "application/json"}, b"{}")
        return dict(bedrock.credentials.sign(request, key))

    headers = signed("bedrock-runtime-fips.us-east-1.amazonaws.com", "AKIA1:secret:a/token+")
    assert "/us-east-1/bedrock/aws4_request" in headers["authorization"]
    assert headers["x-amz-security-token"] == "a/token+"
    assert "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token" in headers["authorization"]
    assert signed("bedrock-runtime.us-west-2.amazonaws.com", "a-bedrock-api-key") == {}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """A machine without any keys, on which nothing outside of it is asked for some."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    bedrock.credentials._session.cache_clear()
    yield monkeypatch
    bedrock.credentials._session.cache_clear()


def signed_by_chain() -> dict[str, str]:
    url = "https://bedrock-runtime.us-west-2.amazonaws.com/model/x/invoke"
    return dict(bedrock.credentials.sign(HttpRequest("POST", url, {"content-type": "application/json"}, b"{}"), CHAIN))


def test_the_chain_finds_keys_in_variables_and_profiles(aws: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(NotSigned, match="found no keys"):
        signed_by_chain()
    profile = tmp_path / "credentials"
    profile.write_text("[media]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = secret\n")
    aws.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    aws.setenv("AWS_PROFILE", "media")
    bedrock.credentials._session.cache_clear()
    assert "Credential=AKIAPROFILE/" in signed_by_chain()["authorization"]
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIAVARIABLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    bedrock.credentials._session.cache_clear()
    assert "Credential=AKIAVARIABLE/" in signed_by_chain()["authorization"]


@pytest.mark.parametrize(
    "problem",
    [
        ClientError({"Error": {"Code": "AccessDenied", "Message": "not for arn:aws:iam::1:role/x"}}, "AssumeRole"),
        FileNotFoundError(2, "No such file or directory", "/opt/find-keys"),
        ValueError("Expecting value: line 1 column 1 (char 0)"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_a_chain_that_fails_does_not_sign(aws: pytest.MonkeyPatch, problem: Exception) -> None:
    """The role may not be taken, the program that has the keys is missing, or what it prints is no JSON."""

    class FailingSession:
        def get_credentials(self) -> None:
            raise problem

    aws.setattr(bedrock.credentials, "_session", cache(FailingSession))
    with pytest.raises(NotSigned, match=r"AssumeRole|No such file|Expecting value"):
        signed_by_chain()


async def test_keys_of_a_role_are_fetched_when_needed_and_renewed(
    aws: pytest.MonkeyPatch, installation: Installation
) -> None:
    provider = Bedrock()
    installation.environ[KEY_ENV] = CHAIN
    async with gateway_for(installation.open, "bedrock", provider) as running:
        failed = await create_image(running, model="stability/core")
        assert (failed["status"], "cannot be signed" in failed["error_message"]) == ("upstream_failure", True)
        aws.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{provider.url}/credentials")
        assert provider.received("keys") == [], "nothing is asked for before it is needed"
        provider.keys_expire = "2026-01-01T00:00:00Z"
        with capture_logs() as lines:
            late = await create_image(running, model="stability/core")
        # Why there are no keys is for the operator: the reasons name roles, accounts and files.
        assert late["error_message"].endswith(
            " to Amazon Bedrock cannot be signed: the gateway has no credential for it."
        )
        # It may be tried several times.
        assert {"still expired" in line["words"] for line in lines if line["event"] == "attempt failed"} == {True}
        soon = datetime.now(UTC) + timedelta(minutes=12)  # so they are renewed with each request
        provider.keys_expire = soon.isoformat()
        for _ in range(2):
            assert (await create_image(running, model="stability/core"))["status"] == "completed"
        asked = len(provider.received("keys"))
        provider.keys_expire = "2999-01-01T00:00:00Z"
        for _ in range(3):
            assert (await create_image(running, model="stability/core"))["status"] == "completed"
        assert len(provider.received("keys")) == asked + 1, "then they are kept"
    assert {call.headers["x-amz-security-token"] for call in provider.received("invoke")} == {"a token of the role"}


# ---------------------------------------------------------------------------------------------------------- the gateway


@pytest.mark.parametrize("key", [KEY, ACCOUNT])
async def test_images(installation: Installation, key: str) -> None:
    provider = Bedrock()
    installation.environ[KEY_ENV] = key
    async with gateway_for(installation.open, "bedrock", provider) as running:
        made = await create_image(running, model="sd3.5-large", size="1792x1024", seed=7, negative_prompt="rain")
        edited = await edit_image(running, model="stability/inpaint", mask=MASK_URI)
        larger = await edit_image(running, model="stability/fast-upscale", image=IMAGE_URI, prompt=None)
        assert [str(record["cost"]) for record in (made, edited, larger)] == ["0.08", "0.07", "0.03"]
    first, second, third = provider.received("invoke")
    assert first.fields == {
        "prompt": "a pear",
        "negative_prompt": "rain",
        "seed": 7,
        "aspect_ratio": "16:9",
        "mode": "text-to-image",
        "output_format": "png",
    }
    assert second.fields.keys() == {"prompt", "image", "mask", "output_format"}
    assert third.fields.keys() == {"image", "output_format"}


async def test_failures(open_gateway: OpenGateway) -> None:
    provider = Bedrock()
    provider.next("invoke", responds(FILTERED))
    async with gateway_for(open_gateway, "bedrock", provider) as running:
        refused = await create_image(running, model="stability/core")
        assert refused["error_code"] == "CONTENT_POLICY_VIOLATION"
        assert await running.money() == (10_000_000_000, 0)


async def test_keys_of_an_account_need_an_extra(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_extras, "find_spec", lambda name: None if name == "botocore" else object())
    installation.environ[KEY_ENV] = ACCOUNT
    async with gateway_for(installation.open, "bedrock", Bedrock()) as running:
        with pytest.raises(ModelNotFound, match=r"pip install '\.\[bedrock\]'"):
            await create_image(running, model="bedrock/stability/core")
