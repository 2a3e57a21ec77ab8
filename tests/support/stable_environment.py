"""Environment whose changes cannot crash native threads that read it.

glibc's ``setenv`` moves the array of variables while other threads may read it. polars has such a thread
after it has read an object from a URL: it reads a variable ten times a second. Tests change variables all
the time. Here the array never moves and no text is freed. glibc 2.41 and later need no such help.
"""

from __future__ import annotations

import ctypes
import os
from itertools import count, takewhile

_ROOM = 2**14


def keep_in_place() -> None:
    """Let ``os.environ`` change variables in an array that stays where it is; on Linux."""
    try:
        environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    except (OSError, ValueError):
        return
    array = (ctypes.c_char_p * _ROOM)()
    texts: list[bytes] = []  # every text that the array ever held

    def variables() -> list[bytes]:
        texts_of_all = (environ[i] for i in count())
        return list(takewhile(lambda text: text is not None, texts_of_all))

    def put(place: int, text: bytes | None) -> None:
        if text is not None:
            texts.append(text)
        array[place] = text

    def adopt() -> list[bytes]:
        """Take over what native code has changed since."""
        found = variables()
        if ctypes.addressof(environ.contents) != ctypes.addressof(array):
            for i, text in enumerate([*found, None]):
                put(i, text)
            ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value = ctypes.addressof(array)
        return found

    def putenv(name: str | bytes, value: str | bytes, /) -> None:
        start = os.fsencode(name) + b"="
        found = adopt()
        place = next((i for i, text in enumerate(found) if text.startswith(start)), len(found))
        if place == len(found):
            put(place + 1, None)
        put(place, start + os.fsencode(value))

    def unsetenv(name: str | bytes, /) -> None:
        start = os.fsencode(name) + b"="
        found = adopt()
        kept = [text for text in found if not text.startswith(start)]
        for i, text in enumerate(kept):
            if found[i] != text:
                put(i, text)
        for i in range(len(kept), len(found)):
            put(i, None)

    adopt()
    os.putenv, os.unsetenv = putenv, unsetenv
