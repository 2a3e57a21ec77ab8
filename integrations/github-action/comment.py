"""Put the report of a gate into a comment on the pull request, or into the one that it has already.

The comment is found by the first line of the report, which readers do not see, among those that bots wrote.
What GitHub refuses is a warning: pull requests of forks have no right to comment.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

_SECONDS = 20
_PAGE = 100


def request(method: str, url: str, data: dict[str, str] | None = None) -> Any:
    """Ask GitHub's API, and return what it answers, decoded."""
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Content-Type": "application/json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    body = None if data is None else json.dumps(data).encode()
    asked = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.urlopen(asked, timeout=_SECONDS) as answer:
        return json.load(answer)


def comments(url: str) -> Iterator[dict[str, Any]]:
    """Give all comments of a pull request."""
    for page in range(1, sys.maxsize):
        found = request("GET", f"{url}?per_page={_PAGE}&page={page}")
        yield from found
        if len(found) < _PAGE:
            return


def main() -> None:
    """Write the comment."""
    body = Path(sys.argv[1]).read_text(encoding="utf-8")
    marker = body.partition("\n")[0]
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    url = f"{issues}/{int(event['pull_request']['number'])}/comments"
    try:
        for comment in comments(url):
            is_bot = (comment.get("user") or {}).get("type") == "Bot"
            if is_bot and (comment.get("body") or "").partition("\n")[0].rstrip("\r") == marker:
                request("PATCH", f"{issues}/comments/{int(comment['id'])}", {"body": body})
                return
        request("POST", url, {"body": body})
    except (URLError, OSError, ValueError) as error:
        said = " ".join(str(error).split())
        print(f"::warning title=trackperm gate::the pull request has got no comment: {said}")


if __name__ == "__main__":
    main()
