"""Integers of arguments, within their bounds."""

from __future__ import annotations

import operator
from typing import Final

#: What the native half counts in.
COUNT_MAX: Final = 2**63 - 1
#: The most threads, as of ``fulmar sim --jobs``.
JOBS_MAX: Final = 1024


def whole(name: str, number: int, least: int, most: int) -> int:
    """An integer argument, by its name.

    Raises:
        ValueError: It is below ``least`` or above ``most``.
        TypeError: It is no integer.
    """
    try:
        number = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={number!r}: give a whole number") from None
    if not least <= number <= most:
        raise ValueError(f"{name}={number}: give {least} to {most}" if most < COUNT_MAX else f"{name}={number}: give {least} or more")
    return number
