"""Digests of what files hold, by the part of Python that starts at once.

``hashlib`` has the same function, and loads OpenSSL first: longer than a package takes to be read. The standard library's
``random`` does likewise.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # a Python that is built without it
    from hashlib import blake2b

DIGEST_BYTES = 32


def digest_of(*parts: bytes | memoryview) -> bytes:
    """The digest of ``parts``, one behind the other."""
    found = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        found.update(part)
    return found.digest()


def digest(content: bytes | memoryview) -> str:
    """The digest of bytes, in hexadecimal digits."""
    return digest_of(content).hex()
