"""Results of sweeps, in their files."""

from __future__ import annotations

import errno
import json
import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from . import _native
from .names import Named
from .table import Table

_ABSENT = "no such file; `sweep(..., out=FILE)` and `fulmar sim SCENARIO --out FILE` write a Parquet file of a sweep's runs"


@dataclass(frozen=True)
class About:
    """The description that a file of results has of itself.

    ``document`` is the scenario as TOML, with all changes and the sweep: ``sweep(Scenario(about.document, about.scenario))``
    makes the same file again, to the octet, if the traces that it names are there. ``scenario`` is the name of its file,
    ``version`` that of Fulmar, ``digest`` one of all that the results depend on but for the version. ``seeds`` are those of
    a point's runs, and ``parameters`` what the scenario says at its first point, by path.
    """

    version: str
    scenario: str
    document: str
    digest: str
    seeds: range
    points: int
    parameters: Mapping[str, str]


class Results:
    """The results of a sweep: two Parquet files, read when they are asked for."""

    def __init__(self, path: Path, passing: Path | None = None) -> None:
        """Results in a file; ``passing`` is a directory that goes with them."""
        self.path = path
        if passing is not None:
            weakref.finalize(self, shutil.rmtree, passing, ignore_errors=True)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Results:
        """The results that ``sweep(..., out=path)`` or ``fulmar sim --out path`` has left.

        Args:
            path: The file of the runs; that of the points lies beside it.

        Raises:
            FileNotFoundError: The file is not there, or only parts of a sweep that was stopped are.
            IsADirectoryError: It is a folder.
        """
        path = Path(path)
        if path.is_dir():
            said = "it is a folder; name the Parquet file of a sweep's runs in it, which `out=` or `fulmar sim --out` named"
            raise IsADirectoryError(errno.EISDIR, said, str(path))
        if not path.exists():
            parts = parts_of(path)
            stopped = f"a sweep into it was stopped: the same call goes on with the parts in {parts.name}"
            said = stopped if parts.is_dir() else _ABSENT
            raise FileNotFoundError(errno.ENOENT, said, str(path))
        return cls(path)

    @property
    def runs(self) -> Table:
        """A row for each run."""
        return Table.read(self.path)

    @property
    def points(self) -> Table:
        """A row for each point: means, and half the width of their 95 % intervals in the columns ``..._ci95``.

        Raises:
            FileNotFoundError: Their file does not lie beside that of the runs, which are those of a shard, for instance.
        """
        file = points_file(self.path)
        if not file.exists():
            said = f"no file of points beside {self.path.name}; `fulmar merge {self.path.name} --out FILE.parquet` makes one of whole sweeps"
            raise FileNotFoundError(errno.ENOENT, said, str(file))
        return Table.read(file)

    @property
    def about(self) -> About:
        """The description in the file: the scenario, the seeds of each point's runs, the version."""
        told = json.loads(_native.description(self.path))
        seeds = range(told["seed"], told["seed"] + told["runs"] // max(told["points"], 1))
        parameters = Named[str](told["parameters"], "parameter that the scenario says", "`about.parameters`")
        return About(told["version"], told["scenario"], told["document"], told["digest"], seeds, told["points"], parameters)

    def __repr__(self) -> str:
        return f"<fulmar_lab.Results in {self.path}>"


def parts_of(runs: Path) -> Path:
    """The folder of the parts of a sweep whose runs go to this file."""
    return runs.with_name(f"{runs.name}.parts")


def points_file(runs: Path) -> Path:
    """The file of the points beside this file of runs."""
    return runs.with_name(f"{runs.stem}-points.parquet")
