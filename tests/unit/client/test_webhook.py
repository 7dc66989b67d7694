"""Signatures of webhooks, which the gateway and a library of others make."""

import base64
import json
import os
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from penstock import WebhookRefused, check_webhook

SECRET = "whsec_" + base64.b64encode(os.urandom(24)).decode()
BODY = json.dumps({"type": "video.completed", "data": {"id": "req_1", "output": {"url": "https://x.test/?s=s3cret"}}})
AT = 1_794_747_600.0


def headers(body: str = BODY, secret: str = SECRET, at: float = AT) -> dict[str, str]:
    signature = Webhook(secret).sign("msg_1", datetime.fromtimestamp(at, UTC), body)
    return {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(int(at)), "Webhook-Signature": signature}


def test_a_webhook_with_the_right_signature_is_read() -> None:
    event = check_webhook(BODY.encode(), headers(), SECRET, now=AT)
    assert (event.type, event.message_id, event.generation_id) == ("video.completed", "msg_1", "req_1")
    assert "s3cret" not in repr(event)


def test_one_of_several_signatures_is_enough() -> None:
    """While a secret is changed, deliveries carry two."""
    both = {**headers(), "Webhook-Signature": f"v1,AAAA {headers()['Webhook-Signature']}"}
    assert check_webhook(BODY, both, SECRET, now=AT).type == "video.completed"


@pytest.mark.parametrize(
    ("body", "given", "now"),
    [
        (BODY + " ", headers(), AT),
        (BODY, headers(secret="whsec_" + base64.b64encode(b"another").decode()), AT),
        (BODY, headers(), AT + 301),
        (BODY, headers(), AT - 301),
        (BODY, {**headers(), "Webhook-Id": "msg_2"}, AT),
        (BODY, {**headers(), "Webhook-Timestamp": "now"}, AT),
        (BODY, {}, AT),
        (BODY, {**headers(), "Webhook-Signature": "é"}, AT),
    ],
)
def test_any_other_is_refused(body: str, given: dict[str, str], now: float) -> None:
    with pytest.raises(WebhookRefused):
        check_webhook(body, given, SECRET, now=now)


def test_a_secret_that_is_none_is_said() -> None:
    with pytest.raises(ValueError, match="base64 after `whsec_`"):
        check_webhook(BODY, headers(), "whsec_?", now=AT)
