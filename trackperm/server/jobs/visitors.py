"""Visitors of the server: who owns a job and its result, and who takes turns with whom.

A user who has signed in is identified by name. On a server without accounts, which is the usual case, a
visitor is one page that is open in a browser: a page draws a random token and sends it with every request.

While jobs wait, these guarantees hold whatever other clients do, and whatever tokens or cookies they invent:

- Clients take turns. A client is a user, or without accounts a network address (of IPv6, the first 64 bits,
  the usual share of one household or machine). The waiting client with the fewest running jobs comes next, so
  a client with a thousand waiting jobs delays others by its running jobs only.
- The pages of one client take turns in the same way, so visitors behind one proxy are served in turn.
- The number of waiting jobs per client is bounded. The bound of an address is far above what fifty visitors
  need at once, and below the bound of all jobs, so that other clients find room.

Behind a proxy that hides addresses, a visitor can invent pages, and so take more of the address's turns and
fill its queue: no request distinguishes such pages from honest ones. Accounts do, and so does a proxy that
forwards addresses (``X-Forwarded-For``, which uvicorn believes from ``--forwarded-allow-ips``, by default
127.0.0.1). A running job is not interrupted for others; its time limit ends it.
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
    """Sender of a request, as digests.

    Attributes
    ----------
    owner : str
        Digest of whoever may read the results: a user, else a page, else a program at an address.
    client : str
        Digest of the user or address that takes turns with other clients.
    page : str
        Digest of the page that takes turns within its client, and that has to stay open while its jobs wait.
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
        """Identify the sender of `request`; `user` is the name of the user who has signed in."""
        token = request.headers.get(PAGE_HEADER, "")
        is_page = _TOKEN.fullmatch(token) is not None
        client = _digest("user", user) if user else _digest("address", _network(request.remote_addr or ""))
        page = _digest(client if user else "page", token) if is_page else client
        return cls(client if user else page, client, page, bool(user), is_page)


def _network(address: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket has no address
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _IPV6_PREFIX), strict=False))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
