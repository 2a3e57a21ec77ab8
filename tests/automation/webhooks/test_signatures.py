"""Signatures of webhooks, against MLflow's own code, OpenSSL's, and every way to get them wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.webhooks.delivery import _generate_hmac_signature

from trackperm.automation.webhooks.signatures import verify_mlflow, verify_wandb
from trackperm.errors import SignatureError

SECRET = "the-shared-secret"
BODY = '{"artifact": "team/digits/predictions:v3", "naïve": "ü"}'.encode()
DELIVERY, NOW = "0f8fad5b-d9cb-469f-a165-70867728950e", 1_800_000_000


def wandb_signature(body: bytes = BODY, secret: str = SECRET) -> str:
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


def mlflow_headers(body: bytes = BODY, secret: str = SECRET, **changes: str) -> dict[str, str]:
    signature = _generate_hmac_signature(secret, DELIVERY, str(NOW), body.decode())
    headers = {"Signature": signature, "Delivery-Id": DELIVERY, "Timestamp": str(NOW), **changes}
    return {f"X-MLflow-{name}": value for name, value in headers.items()}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="OpenSSL's command is not installed")
def test_wandb_against_openssl():
    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", SECRET, "-binary"],
        input=BODY,
        capture_output=True,
        check=True,
        timeout=30,
    ).stdout
    headers = {"X-Wandb-Signature": base64.b64encode(made).decode()}
    assert verify_wandb(headers, BODY, SECRET) == f"wandb:{hashlib.sha256(BODY).hexdigest()}"
    assert verify_wandb({"X-Wandb-Signature": made.hex()}, BODY, SECRET)
    assert verify_wandb({"X-Wandb-Signature": f"sha256={made.hex()}"}, BODY, SECRET)


def test_headers_are_found_in_any_case():
    headers = Message()
    headers["x-wandb-signature"] = wandb_signature()
    assert verify_wandb(headers, BODY, SECRET)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "A",
        "====",
        "ü",
        wandb_signature(BODY + b" "),
        wandb_signature(secret="another"),
        wandb_signature()[:-4],
        wandb_signature() + "AAAA",
        wandb_signature(b""),
        "0" * 64,
        "v1," + wandb_signature(),
    ],
)
def test_wandb_refuses(signature: str):
    with pytest.raises(SignatureError, match="does not match the body"):
        verify_wandb({"X-Wandb-Signature": signature}, BODY, SECRET)


def test_against_mlflows_own_code():
    assert verify_mlflow(mlflow_headers(), BODY, SECRET, NOW) == f"mlflow:{DELIVERY}"
    assert verify_mlflow(mlflow_headers(), BODY, SECRET, NOW + 299)
    assert verify_mlflow(mlflow_headers(), BODY, SECRET, NOW - 299)
    two = "v1,bm8= " + mlflow_headers()["X-MLflow-Signature"]
    assert verify_mlflow(mlflow_headers(Signature=two), BODY, SECRET, NOW)


@pytest.mark.parametrize("now", [NOW + 301, NOW - 301, 0.0])
def test_mlflow_refuses_what_was_signed_at_another_time(now: float):
    with pytest.raises(SignatureError, match="more than 300 seconds"):
        verify_mlflow(mlflow_headers(), BODY, SECRET, now)


@pytest.mark.parametrize(
    "changes",
    [
        {"Timestamp": str(NOW + 1)},
        {"Delivery-Id": DELIVERY[::-1]},
        {"Signature": "v1,"},
        {"Signature": "v2," + mlflow_headers()["X-MLflow-Signature"].removeprefix("v1,")},
        {"Signature": mlflow_headers()["X-MLflow-Signature"].removeprefix("v1,")},
        {"Signature": mlflow_headers(BODY + b" ")["X-MLflow-Signature"]},
        {"Signature": mlflow_headers(secret="another")["X-MLflow-Signature"]},
        {"Timestamp": "1e9"},
        {"Timestamp": "-5"},
        {"Timestamp": "٣"},
        {"Timestamp": "9" * 4000},
        {"Delivery-Id": ""},
        {"Delivery-Id": "x" * 101},
        {"Delivery-Id": "a b c d e f g h"},
    ],
)
def test_mlflow_refuses(changes: dict[str, str]):
    with pytest.raises(SignatureError):
        verify_mlflow(mlflow_headers(**changes), BODY, SECRET, NOW)


@pytest.mark.parametrize("name", ["Signature", "Delivery-Id", "Timestamp"])
def test_every_header_of_mlflow_is_needed(name: str):
    headers = mlflow_headers()
    del headers[f"X-MLflow-{name}"]
    with pytest.raises(SignatureError, match=f"`X-MLflow-{name}`"):
        verify_mlflow(headers, BODY, SECRET, NOW)


@given(position=st.integers(0, len(BODY) - 1), bit=st.integers(0, 7))
def test_no_bit_of_a_body_can_be_changed(position: int, bit: int):
    changed = bytearray(BODY)
    changed[position] ^= 1 << bit
    with pytest.raises(SignatureError):
        verify_wandb({"X-Wandb-Signature": wandb_signature()}, bytes(changed), SECRET)
    with pytest.raises(SignatureError):
        verify_mlflow(mlflow_headers(), bytes(changed), SECRET, NOW)


@given(text=st.text(max_size=200))
def test_any_text_is_refused_without_another_error(text: str):
    with pytest.raises(SignatureError):
        verify_wandb({"X-Wandb-Signature": text}, BODY, SECRET)
    with pytest.raises(SignatureError):
        verify_mlflow(mlflow_headers(Signature=text), BODY, SECRET, NOW)


def test_nothing_secret_is_said():
    for call in (
        lambda: verify_wandb({"X-Wandb-Signature": "x"}, BODY, SECRET),
        lambda: verify_mlflow(mlflow_headers(Signature="v1,x"), BODY, SECRET, NOW),
    ):
        with pytest.raises(SignatureError) as caught:
            call()
        assert SECRET not in str(caught.value)
        assert wandb_signature() not in str(caught.value)
