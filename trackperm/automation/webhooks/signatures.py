"""Signatures of webhooks: who sent a body, and when.

W&B signs the body alone: ``X-Wandb-Signature`` is the HMAC-SHA256 of it, in base64; hexadecimal digits, which
its documentation shows as well, are taken too. So a body is known to be W&B's but not to be new, and a replay
is told by its digest alone. MLflow signs, after the Standard Webhooks convention, delivery id, Unix time and
body joined by dots: ``X-MLflow-Signature`` is ``v1,`` and the base64 of the HMAC-SHA256, and there may be
several, separated by spaces, while a secret is being changed.

Digests are compared in constant time, and before anything of a body is looked at.
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
    """Check the signature of W&B, and return what identifies the delivery.

    Parameters
    ----------
    headers : Message or mapping of str to str
        Looked up as ``X-Wandb-Signature``; HTTP's own are found in any case.
    body : bytes
        As it was received.
    secret : str
        What W&B and this receiver share.

    Raises
    ------
    SignatureError
        If there is no signature, or it is not that of the body.
    """
    given = headers.get("X-Wandb-Signature")
    if given is None:
        raise SignatureError("there is no header `X-Wandb-Signature`")
    given = given.strip().removeprefix("sha256=")
    if not _is_one([given], hmac.new(secret.encode(), body, hashlib.sha256).digest()):
        raise SignatureError("the signature is not that of the body")
    return f"wandb:{hashlib.sha256(body).hexdigest()}"


def verify_mlflow(
    headers: Message | Mapping[str, str], body: bytes, secret: str, now: float, window: float = REPLAY_SECONDS
) -> str:
    """Check the signature of MLflow and the time that it covers, and return what identifies the delivery.

    Parameters
    ----------
    headers : Message or mapping of str to str
        Looked up as ``X-MLflow-Signature``, ``X-MLflow-Delivery-Id`` and ``X-MLflow-Timestamp``.
    body : bytes
        As it was received.
    secret : str
        Of the webhook.
    now : float
        Unix time.
    window : float
        Seconds that the time may be away from `now`, either way.

    Raises
    ------
    SignatureError
        If something is missing, the signature is not that of id, time and body, or the time is not now.
    """
    names = "X-MLflow-Signature", "X-MLflow-Delivery-Id", "X-MLflow-Timestamp"
    for name in names:
        if headers.get(name) is None:
            raise SignatureError(f"there is no header `{name}`")
    given, delivery, written = (str(headers.get(name)).strip() for name in names)
    if not _DELIVERY.fullmatch(delivery) or not (written.isascii() and written.isdecimal()):
        raise SignatureError(
            "`X-MLflow-Delivery-Id` or `X-MLflow-Timestamp` is not of the form that MLflow gives it"
        )
    signed = b".".join([delivery.encode(), written.encode(), body])
    versions = [each.removeprefix("v1,") for each in given.split(" ") if each.startswith("v1,")]
    if not _is_one(versions, hmac.new(secret.encode(), signed, hashlib.sha256).digest()):
        raise SignatureError("the signature is not that of the delivery")
    if len(written) > 15 or abs(now - int(written)) > window:
        raise SignatureError(f"the delivery was signed more than {window:g} seconds before or after now")
    return f"mlflow:{delivery}"


def _is_one(given: list[str], expected: bytes) -> bool:
    """Whether one of the encoded digests is `expected`, in a time that does not tell how much of it is."""
    found = False
    for text in given[:8]:
        found |= hmac.compare_digest(_decoded(text), expected)
    return found


def _decoded(text: str) -> bytes:
    """Decode base64, or hexadecimal digits; anything else is no digest."""
    try:
        if len(text) == 2 * _DIGEST_BYTES:
            return bytes.fromhex(text)
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""
