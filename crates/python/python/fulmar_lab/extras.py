"""Packages that a part of this one needs, which its users choose by ``pip install 'fulmar-lab[EXTRA]'``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Imports of packages that belong to an extra; a missing one is an error that names the extra.

    Raises:
        ModuleNotFoundError: A package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is not installed: pip install 'fulmar-lab[{extra}]'", name=error.name, path=error.path) from None
