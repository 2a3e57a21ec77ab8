"""Who asks for jobs: who may read the results, and who takes turns with whom.

A user who has signed in is known by name. On a server without accounts, the usual one, a visitor is one page
that is open in a browser: pages make up a token, and send it with every request.

What is guaranteed while jobs wait, whatever other clients do, and whatever tokens or cookies they make up:

- Clients take turns. A client is a user; without accounts it is a network address (of IPv6, the first 64
  bits, which a household or machine has to itself). Of clients that wait, one with fewer jobs running comes
  first, so that somebody who asks for a thousand jobs delays others by the jobs that run, and no further.
- The pages of a client take turns in the same way, so that visitors behind one proxy are served in turn.
- The jobs of one client that wait are bounded: those of an address far above what fifty visitors at once ask
  for, so that these are not refused, and below what all may wait for, so that other clients find room.

What is not guaranteed: behind a proxy that hides addresses, a visitor can make up pages, take a larger share
of that address, and fill its places. Nothing in a request tells such pages from honest ones. Accounts do, and
so does a proxy that names addresses (``X-Forwarded-For``, which uvicorn believes of those in
``--forwarded-allow-ips``, by default 127.0.0.1). A job that runs is not interrupted for others; its limit of
seconds ends it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass

from flask import Request

PAGE_HEADER = "X-Trackperm-Page"

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")
_IPV6_PREFIX = 64


@dataclass(frozen=True)
class Visitor:
    """The sender of a request, as digests.

    Attributes
    ----------
    owner : str
        Who may read what this visitor asked for: a user, else a page, else a program at an address.
    client : str
        With whom other clients take turns: a user, else an address.
    page : str
        With whom other pages of the client take turns, and who has to be heard of while jobs wait.
    is_user : bool
        Whether the client is a user.
    is_page : bool
        Whether the request comes from a page; programs send no token.
    """

    owner: str
    client: str
    page: str
    is_user: bool
    is_page: bool

    @classmethod
    def of(cls, request: Request, user: str | None) -> Visitor:
        """Tell who has sent `request`, where `user` is the name of who has signed in."""
        token = request.headers.get(PAGE_HEADER, "")
        is_page = _TOKEN.fullmatch(token) is not None
        client = _digest("user", user) if user else _digest("address", _network(request.remote_addr or ""))
        page = _digest(client if user else "page", token) if is_page else client
        return cls(client if user else page, client, page, bool(user), is_page)


def _network(address: str) -> str:
    """Return what one client has to itself: an IPv4 address, or the network of one of IPv6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a socket of the file system has none
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _IPV6_PREFIX), strict=False))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
