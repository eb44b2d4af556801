"""Sweeps: many runs of a scenario, in parts that any engine makes."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from . import _native
from .bounds import COUNT_MAX, JOBS_MAX, whole
from .engines import Asked, Engine, Task, build, engine_of
from .extras import needs
from .results import Results, parts_of, points_file
from .scenario import Grid, Scenario, Setting

#: A sweep is cut into so many parts at least, and into so many for each slot of an engine, if it has as many runs.
_PARTS = 64
_PARTS_PER_SLOT = 10
_RUNS_PER_THREAD = 4
_PART_RUNS_MAX = 4096
#: Seconds between two questions for an engine's slots: a scheduler's answer lists all workers.
_SLOTS_EVERY_S = 1.0


def sweep(
    scenario: Scenario,
    grid: Grid | None = None,
    *,
    runs: int | None = None,
    seed: int | None = None,
    on: Any = "local",
    jobs: int = 0,
    out: str | PathLike[str] | None = None,
    part_runs: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Results:
    """Makes every run of every point, and gives their table.

    The result is the same to the octet on any engine and any number of workers, and the same as that of
    ``fulmar sim --out FILE.parquet``. With ``out``, a sweep that was stopped or killed goes on where it was.

    Args:
        scenario: The scenario.
        grid: The values by path, every combination of which is a point; the last varies fastest. It takes the place of
            the scenario's own sweep.
        runs: Runs for each point; run *i* of every point has the seed ``seed + i``.
        seed: The first seed.
        on: ``"local"``; a ``dask.distributed.Client``; ``"ray"``; an executor of ``concurrent.futures``; or an
            :class:`Engine` of your own.
        jobs: Threads where ``on="local"``; 0 is one for each core.
        out: The Parquet file of the runs; that of the points lies beside it. Without it both are in a directory that
            goes with the results. Where it has all runs already, none is made.
        part_runs: Runs that are made as one task. Without it a sweep is cut into 64 tasks or more, ten for each slot of an
            engine, of 4,096 runs at most. A sweep that goes on takes what is there, however it was cut.
        progress: ``True`` for a bar (tqdm), or a function that is called with the runs done and all runs. Without it a
            bar is drawn where a person looks: in a terminal or a notebook.

    Raises:
        ScenarioError: The scenario or the grid is wrong.
        ValueError: ``jobs``, ``part_runs`` or ``out`` is wrong.
        SweepError: A worker has another build of the package or other traces, an executor is broken, a part cannot be
            read, or ``out`` has the results of another sweep.
        OSError: The files cannot be written.
        KeyboardInterrupt: Ctrl-C. With ``out``, the parts that were whole are kept, the message says how many runs they
            have, and the same call goes on with them. Without it nothing is kept.
    """
    changes: dict[str, Setting] = {}
    if runs is not None:
        changes["run.runs"] = runs
    if seed is not None:
        changes["run.seed"] = seed
    scenario = scenario.with_(changes)
    # Asked once: the code of parts that cannot be read has another digest each time.
    asked = scenario._asked(grid)
    study = _native.NativeStudy(*asked)
    if out is None:
        passing = Path(tempfile.mkdtemp(prefix="fulmar-lab-"))
        results = Results(passing / "runs.parquet", passing)
    else:
        results = Results(Path(out))
    path = results.path
    if path.suffix != ".parquet":
        raise ValueError(f"out={str(out)!r}: name a file that ends in .parquet")
    jobs = whole("jobs", jobs, 0, JOBS_MAX)
    if part_runs is not None:
        part_runs = whole("part_runs", part_runs, 1, COUNT_MAX)
    if study.is_whole(path) and points_file(path).exists():
        return results
    directory = parts_of(path)
    try:
        _make(study, asked, engine_of(on), jobs, part_runs, path, _Progress(progress, study.runs))
    except KeyboardInterrupt:
        # Raised here, so that its traceback does not go through the threads and queues of an engine.
        raise KeyboardInterrupt(_stopped(study, directory if out is not None else None)) from None
    try:
        directory.rmdir()
    except OSError:
        pass  # Parts of another scenario lie there; they are the user's.
    return results


def _make(
    study: _native.NativeStudy, asked: Asked, engine: Engine | None, jobs: int, part_runs: int | None, path: Path, told: _Progress
) -> None:
    """Makes the parts that are missing, and puts all of them together."""
    directory = parts_of(path)
    directory.mkdir(parents=True, exist_ok=True)
    kept, spare, missing = study.found_parts(directory, build(), part_runs or _part_runs(study.runs, engine, jobs))
    files = {span: directory / f"{study.part_name(*span, build())}.parquet" for span in missing}
    try:
        told.add(study.runs - sum(count for _, count in missing))
        if engine is None:
            for first, count in missing:
                study.write_part(first, count, jobs, build(), files[first, count], told.of_part())
        else:
            tasks = {span: Task(asked, *span, build()) for span in missing}
            _elsewhere(engine, study, tasks, files, told)
    finally:
        told.close()
    made = [*(file for _, _, file in kept), *files.values()]
    _native.merge(made, path, points_file(path))
    for file in [*made, *spare]:
        Path(file).unlink()


def _stopped(study: _native.NativeStudy, directory: Path | None) -> str:
    if directory is None:
        return "the sweep was stopped, and nothing of it is kept; with out=, the same call would go on with what is made"
    # Nothing was begun before there was an engine.
    kept = study.found_parts(directory, build(), study.runs)[0] if directory.is_dir() else ()
    runs = sum(count for _, count, _ in kept)
    return f"the sweep was stopped; {runs} of its {study.runs} runs are kept in {directory}, and the same call goes on with them"


def _part_runs(runs: int, engine: Engine | None, jobs: int) -> int:
    if engine is None:
        # A thread of this process has several runs of a part, which waits for its slowest.
        parts, least = _PARTS, _RUNS_PER_THREAD * (jobs or os.cpu_count() or 1)
    else:
        parts, least = max(_PARTS, _PARTS_PER_SLOT * engine.slots), 1
    return min(max(-(-runs // parts), least), _PART_RUNS_MAX)


def _elsewhere(
    engine: Engine, study: _native.NativeStudy, tasks: dict[tuple[int, int], Task], files: dict[tuple[int, int], Path], told: _Progress
) -> None:
    """Makes the parts on an engine, with no more of them under way than keep it busy: a scheduler that holds a million
    tasks is slow, and what waits here costs nothing."""
    waiting = iter(tasks.items())
    under_way: dict[Any, tuple[int, int]] = {}
    wanted, asked = 0, -math.inf
    try:
        while True:
            if time.monotonic() - asked >= _SLOTS_EVERY_S:
                wanted, asked = 2 * engine.slots, time.monotonic()
            while len(under_way) < wanted and (following := next(waiting, None)):
                span, task = following
                under_way[engine.submit(task)] = span
            if not under_way:
                return
            for handle, octets in engine.finished(list(under_way)):
                span = under_way.pop(handle)
                # Written beside its place and moved there, so that a killed client leaves no half of a part.
                beside = files[span].with_suffix(".new")
                beside.write_bytes(octets)
                if not study.has_part(*span, build(), beside):
                    beside.unlink()
                    raise _native.SweepError(f"a worker made other runs than {span[0]} to {sum(span) - 1}: has it other traces than this machine?")
                beside.replace(files[span])
                told.add(span[1])
    finally:
        engine.abandon(list(under_way))


def _is_watched() -> bool:
    """Whether a person looks: at a terminal, or at a notebook, whose stderr is none."""
    if sys.stderr.isatty():
        return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _Progress:
    def __init__(self, wanted: bool | Callable[[int, int], None] | None, total: int) -> None:
        self._done = 0
        self._total = total
        self._told = wanted if callable(wanted) else None
        self._bar: Any = None
        if wanted is True or (wanted is None and _is_watched()):
            try:
                with needs("progress"):
                    from tqdm.auto import tqdm
            except ModuleNotFoundError:
                if wanted is True:
                    raise
            else:
                self._bar = tqdm(total=total, unit="run")

    def add(self, runs: int) -> None:
        self._done += runs
        if self._told and runs:
            self._told(self._done, self._total)
        if self._bar is not None:
            self._bar.update(runs)

    def of_part(self) -> Callable[[int], None]:
        """What the native half calls with the runs of one part that are over."""
        before = 0

        def told(done: int) -> None:
            nonlocal before
            self.add(done - before)
            before = done

        return told

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
