"""Signatures of webhooks, which prove who sent a body, and for MLflow when.

W&B signs the body alone: ``X-Wandb-Signature`` is the HMAC-SHA256 of the body in base64. Hexadecimal digits,
which its documentation shows as well, are accepted too. The signature does not prove that the delivery is
new; a replay is recognised by the digest of its body. MLflow follows the Standard Webhooks convention, and
signs delivery id, Unix time and body, joined by dots: ``X-MLflow-Signature`` is ``v1,`` and the base64 of the
HMAC-SHA256. While a secret is being changed there may be several signatures, separated by spaces.

Digests are compared in constant time, and before the body is parsed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from email.message import Message

from trackperm.errors import SignatureError

REPLAY_SECONDS = 300.0

_DELIVERY = re.compile(r"[\w-]{8,100}", re.ASCII)
_DIGEST_BYTES = hashlib.sha256().digest_size


def verify_wandb(headers: Message | Mapping[str, str], body: bytes, secret: str) -> str:
    """Check the signature of W&B, and return an id of the delivery.

    Raise SignatureError if ``X-Wandb-Signature`` is missing, or does not match the body as it was received.
    """
    given = headers.get("X-Wandb-Signature")
    if given is None:
        raise SignatureError("the header `X-Wandb-Signature` is missing")
    given = given.strip().removeprefix("sha256=")
    if not _is_one([given], hmac.new(secret.encode(), body, hashlib.sha256).digest()):
        raise SignatureError("the signature does not match the body")
    return f"wandb:{hashlib.sha256(body).hexdigest()}"


def verify_mlflow(headers: Message | Mapping[str, str], body: bytes, secret: str, now: float) -> str:
    """Check the signature of MLflow and the time that it covers, and return an id of the delivery.

    Raise SignatureError if a header is missing, the signature does not match id, time and body, or the signed
    time differs by more than five minutes from `now`, a Unix time.
    """
    names = "X-MLflow-Signature", "X-MLflow-Delivery-Id", "X-MLflow-Timestamp"
    for name in names:
        if headers.get(name) is None:
            raise SignatureError(f"the header `{name}` is missing")
    given, delivery, written = (str(headers.get(name)).strip() for name in names)
    if not _DELIVERY.fullmatch(delivery) or not (written.isascii() and written.isdecimal()):
        raise SignatureError(
            "`X-MLflow-Delivery-Id` or `X-MLflow-Timestamp` does not have the form that MLflow writes"
        )
    signed = b".".join([delivery.encode(), written.encode(), body])
    versions = [each.removeprefix("v1,") for each in given.split(" ") if each.startswith("v1,")]
    if not _is_one(versions, hmac.new(secret.encode(), signed, hashlib.sha256).digest()):
        raise SignatureError("the signature does not match the delivery")
    if len(written) > 15 or abs(now - int(written)) > REPLAY_SECONDS:
        raise SignatureError(
            f"the delivery was signed more than {REPLAY_SECONDS:g} seconds before or after now"
        )
    return f"mlflow:{delivery}"


def _is_one(given: list[str], expected: bytes) -> bool:
    """Whether one of the encoded digests equals `expected`; the time taken does not depend on the digests."""
    found = False
    for text in given[:8]:
        found |= hmac.compare_digest(_decoded(text), expected)
    return found


def _decoded(text: str) -> bytes:
    """Decode base64 or hexadecimal digits; return no bytes for anything else."""
    try:
        if len(text) == 2 * _DIGEST_BYTES:
            return bytes.fromhex(text)
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""
