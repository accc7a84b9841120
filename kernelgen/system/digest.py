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


def digest(content: bytes | memoryview) -> str:
    """The digest of bytes, in hexadecimal digits."""
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
