"""Who is who: users, pages and programs, by what a server without accounts can know."""

from __future__ import annotations

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from trackperm.server.jobs.visitors import PAGE_HEADER, Visitor

FIRST, SECOND = "first-page-of-it", "second-page-of-it"


def visitor(
    token: str | None = None, address: str = "192.0.2.1", user: str | None = None, **more: str
) -> Visitor:
    headers = {**more, **({} if token is None else {PAGE_HEADER: token})}
    environ = EnvironBuilder(headers=headers).get_environ() | {"REMOTE_ADDR": address}
    return Visitor.of(Request(environ), user)


def test_without_accounts_a_visitor_is_a_page() -> None:
    one, other = visitor(FIRST), visitor(SECOND)
    assert one.owner != other.owner
    assert one.client == other.client
    elsewhere = visitor(FIRST, "192.0.2.2")
    assert elsewhere.owner == one.owner  # whose address has changed
    assert elsewhere.client != one.client


def test_cookies_and_credentials_that_nobody_has_checked_change_nothing() -> None:
    """Regression: who made up cookies could take all places."""
    assert visitor(FIRST, Cookie="a=1", Authorization="Bearer x") == visitor(FIRST, Cookie="a=2")
    assert visitor(Cookie="a=1") == visitor()


def test_a_user_is_the_same_everywhere() -> None:
    here, there = visitor(FIRST, user="ann"), visitor(SECOND, "192.0.2.2", user="ann")
    assert (here.owner, here.client) == (there.owner, there.client)
    assert here.page != there.page
    assert here.owner != visitor(FIRST, user="bob").owner
    assert here.page != visitor(FIRST, user="bob").page


@pytest.mark.parametrize("token", ["", "short", "x" * 65, "a/b/c/d/e/f/g/h/i", "../../../../etc/passwd"])
def test_invalid_tokens(token: str) -> None:
    assert visitor(token) == visitor()
    assert not visitor(token).is_page


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "", True),
    ],
)
def test_addresses(one: str, other: str, same: bool) -> None:
    assert (visitor(FIRST, one).client == visitor(FIRST, other).client) is same
