"""Numbers of arguments, within their bounds."""

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


def seconds(name: str, value: float) -> float:
    """A span of an argument, by its name.

    Raises:
        TypeError: It is no number.
    """
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}={value!r}: give seconds as a number, such as 0.05 for 50 ms")
    return float(value)
