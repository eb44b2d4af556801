"""Engines that make the parts of a sweep: this machine, a Dask cluster, a Ray cluster, or any executor."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import queue
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from . import _native
from .extras import needs
from .own import NativeParts

#: What makes a study, here and on a worker.
Asked = tuple[str, str, list[str], str | None, NativeParts | None]


class Task(NamedTuple):
    """A part of a sweep, as it travels to a worker."""

    asked: Asked
    first: int
    runs: int
    build: str


class Engine(Protocol):
    """What makes parts elsewhere. Parts may come in any order; what an engine loses it makes again itself."""

    @property
    def slots(self) -> int:
        """The number of tasks that keep all workers busy."""

    def submit(self, task: Task) -> Any:
        """Starts a task, and gives a handle that can be hashed."""

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        """Waits until at least one of the handles is done, and gives those that are, each with its file."""

    def abandon(self, handles: list[Any]) -> None:
        """Stops what is not done yet, as far as that is possible."""


@cache
def build() -> str:
    """A digest of the native half: parts of different builds are not mixed."""
    return hashlib.blake2b(Path(_native.__file__).read_bytes(), digest_size=16).hexdigest()


def make(task: Task) -> bytes:
    """Makes a part, on a worker: the octets of its file.

    Raises:
        SweepError: The worker has another build of the package than the client, or other code of a part.
    """
    if build() != task.build:
        raise _native.SweepError("a worker has another build of fulmar-lab than this machine; install the same wheel on both")
    parts = task.asked[-1]
    if parts is not None and (other := parts.other_files()):
        raise _native.SweepError(f"a worker has another {', '.join(other)} than this machine; bring the same files to both, and start the workers anew")
    study = _study(task.asked)
    with tempfile.TemporaryDirectory(prefix="fulmar-lab-") as directory:
        path = Path(directory, "part.parquet")
        # A worker has as many tasks at once as it has cores; a task takes one of them.
        study.write_part(task.first, task.runs, 1, task.build, path)
        return path.read_bytes()


class _KeptStudy(NamedTuple):
    asked: Asked
    #: Time and length of the traces that it has read, by file.
    traces: dict[Path, tuple[int, int] | None]
    study: _native.NativeStudy


#: The study of the last task: those of a sweep are of one study, and to read it may take longer than a task's runs.
_kept: _KeptStudy | None = None


def _study(asked: Asked) -> _native.NativeStudy:
    global _kept
    kept = _kept
    if kept is not None and kept.asked == asked and kept.traces == _traces(kept.study):
        return kept.study
    study = _native.NativeStudy(*asked)
    # Classes that came with a task are others each time.
    _kept = _KeptStudy(asked, _traces(study), study) if asked[-1] is None else None
    return study


def _traces(study: _native.NativeStudy) -> dict[Path, tuple[int, int] | None]:
    found: dict[Path, tuple[int, int] | None] = {}
    for file in study.inputs:
        try:
            known = file.stat()
        except OSError:
            found[file] = None
        else:
            found[file] = known.st_mtime_ns, known.st_size
    return found


class _Bell:
    """Handles in the order in which they became done. Each rings once, so waiting costs what came and not what is under way."""

    def __init__(self) -> None:
        self._rung: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()

    def watch(self, handle: Any, future: Any) -> None:
        """Rings when the future is done, and gives the handle and it."""
        future.add_done_callback(lambda _: self._rung.put((handle, future)))

    def rung(self) -> Iterator[tuple[Any, Any]]:
        """Waits for one, and gives all that are there."""
        yield self._rung.get()
        while True:
            try:
                yield self._rung.get_nowait()
            except queue.Empty:
                return


class ExecutorEngine:
    """Any executor of ``concurrent.futures``, such as a ``ProcessPoolExecutor``. One that loses a process is broken as a
    whole, and the sweep ends."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor
        self._bell = _Bell()

    @property
    def slots(self) -> int:
        return int(getattr(self._executor, "_max_workers", os.cpu_count() or 1))

    def submit(self, task: Task) -> concurrent.futures.Future[bytes]:
        try:
            future = self._executor.submit(make, task)
        except concurrent.futures.BrokenExecutor as error:
            raise _broken() from error
        self._bell.watch(future, future)
        return future

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        for handle, future in self._bell.rung():
            try:
                octets = future.result()
            except concurrent.futures.BrokenExecutor as error:
                raise _broken() from error
            yield handle, octets

    def abandon(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.cancel()


def _broken() -> Exception:
    return _native.SweepError("a process of the executor died, which breaks it; with out=, the same sweep goes on with a new executor")


class DaskEngine:
    """A ``dask.distributed.Client``. A task whose worker is lost goes to another one, as often as the scheduler's
    ``allowed-failures`` says (3): it is given up with the fourth worker."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._bell = _Bell()

    @property
    def slots(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    def submit(self, task: Task) -> Any:
        # The same task of a later sweep is not the same request: its file may be gone.
        future = self._client.submit(make, task, pure=False)
        self._bell.watch(future, future)
        return future

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        for handle, future in self._bell.rung():
            yield handle, future.result()
            future.release()

    def abandon(self, handles: list[Any]) -> None:
        self._client.cancel(handles)


class RayEngine:
    """Ray, as ``ray.init`` has set it up, or on this machine. A task whose worker is lost is made again three times."""

    def __init__(self) -> None:
        with needs("ray"):
            import ray

        self._ray = ray
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        self._make = ray.remote(max_retries=3)(make)
        self._bell = _Bell()

    @property
    def slots(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, task: Task) -> Any:
        handle = self._make.remote(task)
        self._bell.watch(handle, handle.future())
        return handle

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        for handle, future in self._bell.rung():
            yield handle, future.result()

    def abandon(self, handles: list[Any]) -> None:
        for handle in handles:
            self._ray.cancel(handle, force=True)


def engine_of(on: Any) -> Engine | None:
    """The engine that ``on`` means; ``None`` is this process.

    Raises:
        TypeError: It means none.
    """
    if on == "local":
        return None
    if on == "ray":
        return RayEngine()
    if isinstance(on, concurrent.futures.Executor):
        return ExecutorEngine(on)
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(on, distributed.Client):
        return DaskEngine(on)
    if all(hasattr(on, name) for name in ("slots", "submit", "finished", "abandon")):
        engine: Engine = on
        return engine
    raise TypeError(f'on={on!r}: give "local", "ray", a dask.distributed.Client, an Executor, or an Engine of your own')
