"""Engines that make the parts of a sweep: this machine, a Dask cluster, a Ray cluster, or any executor."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from . import _native
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
        SweepError: The worker has another build of the package than the client.
    """
    if build() != task.build:
        raise _native.SweepError("a worker has another build of fulmar-lab than this machine; install the same wheel on both")
    study = _native.NativeStudy(*task.asked)
    with tempfile.TemporaryDirectory(prefix="fulmar-lab-") as directory:
        path = Path(directory, "part.parquet")
        # A worker has as many tasks at once as it has cores; a task takes one of them.
        study.write_part(task.first, task.runs, 1, task.build, path)
        return path.read_bytes()


class ExecutorEngine:
    """Any executor of ``concurrent.futures``, such as a ``ProcessPoolExecutor``."""

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor

    @property
    def slots(self) -> int:
        return int(getattr(self._executor, "_max_workers", os.cpu_count() or 1))

    def submit(self, task: Task) -> concurrent.futures.Future[bytes]:
        return self._executor.submit(make, task)

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        done, _ = concurrent.futures.wait(handles, return_when=concurrent.futures.FIRST_COMPLETED)
        for handle in done:
            yield handle, handle.result()

    def abandon(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.cancel()


class DaskEngine:
    """A ``dask.distributed.Client``. A task whose worker is lost goes to another one, as often as the scheduler's
    ``allowed-failures`` says (3)."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def slots(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    def submit(self, task: Task) -> Any:
        # The same task of a later sweep is not the same request: its file may be gone.
        return self._client.submit(make, task, pure=False, retries=3)

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        from distributed import wait

        done = wait(handles, return_when="FIRST_COMPLETED").done
        for handle in done:
            yield handle, handle.result()
            handle.release()

    def abandon(self, handles: list[Any]) -> None:
        self._client.cancel(handles)


class RayEngine:
    """Ray, as ``ray.init`` has set it up, or on this machine."""

    def __init__(self) -> None:
        import ray

        self._ray = ray
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        self._make = ray.remote(max_retries=-1)(make)

    @property
    def slots(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, task: Task) -> Any:
        return self._make.remote(task)

    def finished(self, handles: list[Any]) -> Iterator[tuple[Any, bytes]]:
        done, _ = self._ray.wait(handles, num_returns=1)
        for handle in done:
            yield handle, self._ray.get(handle)

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
    if type(on).__module__.split(".")[0] == "distributed":
        return DaskEngine(on)
    if all(hasattr(on, name) for name in ("slots", "submit", "finished", "abandon")):
        engine: Engine = on
        return engine
    raise TypeError(f'on={on!r}: give "local", "ray", a dask.distributed.Client, an Executor, or an Engine of your own')
