"""Names that are asked for: of columns, of measures, of parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

Content = TypeVar("Content")

#: The names that an error tells of all that there are.
_TOLD = 3


class Named(dict[str, Content]):
    """Values by name. A name that is not there is a ``KeyError`` that says the nearest ones, and where all are listed."""

    def __init__(self, values: Mapping[str, Content], what: str, listed: str) -> None:
        """Values by name; ``what`` a name stands for, and the expression that has all names, both for errors."""
        super().__init__(values)
        self._what = what
        self._listed = listed

    def __missing__(self, name: object) -> Content:
        raise KeyError(f"there is no {self._what} {name!r}; {self._cure(name)}")

    def _cure(self, name: object) -> str:
        listed = f"all {len(self)} are in {self._listed}"
        near = nearest(name, self)
        return f"the nearest: {', '.join(near)}; {listed}" if near else listed


def nearest(name: object, names: Iterable[str]) -> list[str]:
    """The names that are most like one, three at most; none if none is."""
    if not isinstance(name, str):
        return []
    names = list(names)
    alike = difflib.get_close_matches(name, names, _TOLD)
    # A part of a long name is not much like it.
    within = [each for each in names if len(name) > 2 and name in each]
    return list(dict.fromkeys([*alike, *within]))[:_TOLD]
