"""An environment of gymnasium over the choice of repair: each half second an agent says how the losses of a flow of messages
are repaired from now on.

    >>> import fulmar_lab as lab
    >>> from fulmar_lab import gym
    >>> messages = lab.Scenario.build(
    ...     run={"duration": "20s"},
    ...     hop={"rate": "5mbit", "delay": "30ms", "loss": "10%"},
    ...     flow={"transport": "aerotp", "mode": "auto", "traffic": "messages", "size": "200B", "interval": "20ms",
    ...           "deadline": "150ms", "deliver": "all", "bytes": "100kB"},
    ... )
    >>> env = gym.RepairEnv(messages)
    >>> rewards = {name: gym.evaluate(env, policy, seeds=range(3)) for name, policy in gym.baselines(env, seed=1).items()}
    >>> rewards["auto"] > rewards["random"]
    True

The reward of a step is the score of ``fulmar sim --auto-vs-fixed`` over the messages whose deadline passed in it: 1 / (1 + 5 m
+ (x - 1) / 10), where m is the share that missed the deadline beyond the share that may, and x the octets sent for each octet of
message. ``pip install 'fulmar-lab[gym]'`` brings gymnasium.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ._native import RepairSeen
from .extras import needs
from .own import Parts, RepairPlan
from .scenario import Run, Scenario

with needs("gym"):
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from numpy.typing import NDArray

#: The most symbols ahead for eight messages, and the most transmissions in a round of repetition, that an action can ask for.
AHEAD_MAX, TIMES_MAX = 16, 4
#: The name by which the scenario knows the agent.
AGENT = "gymnasium"
#: The names of the numbers that an agent sees, in their order. Shares are of 1; spans are in parts of the deadline.
OBSERVED = (
    "loss",
    "loss_error",
    "behind_a_loss",
    "one_way",
    "round",
    "gap",
    "may_miss",
    "overhead",
    "ahead",
    "times_first",
    "times_second",
    "times_later",
)

Observation = NDArray[np.float32]
#: An action: symbols ahead for eight messages, and the transmissions in the first, second and later rounds of repetition. ``None``
#: leaves the repair as it is, which is to ``auto`` until a plan was chosen.
Action = NDArray[np.int64] | tuple[int, int, int, int] | None
#: A choice of actions by what is seen.
Policy = Callable[[Observation], Action]


class _Stopped(Exception):
    """The episode is given up."""


class _Agent:
    """The controller of one run, which asks the environment's caller."""

    def __init__(self, seen: queue.SimpleQueue[Any], actions: queue.SimpleQueue[Any]) -> None:
        self._seen = seen
        self._actions = actions

    def choose(self, seen: RepairSeen) -> RepairPlan | None:
        self._seen.put(seen)
        plan: RepairPlan | type[_Stopped] | None = self._actions.get()
        if plan is _Stopped:
            raise _Stopped
        return plan  # type: ignore[return-value]


class RepairEnv(gymnasium.Env[Observation, Any]):
    """The repair of the flow of a scenario, which has ``mode = "auto"`` and a deadline.

    An episode is one run, and the seed of :meth:`reset` is the run's. A step lasts half a second of the run. The run is made in a
    thread that waits while the agent thinks, so equal seeds and equal actions give equal episodes. The last step's ``info`` has
    the measures of the run under ``"run"``.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._worker: threading.Thread | None = None
        self._seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._actions: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last: RepairSeen | None = None
        self._observed: Observation = np.zeros(len(OBSERVED), np.float32)
        self.observation_space = spaces.Box(0.0, np.inf, (len(OBSERVED),), np.float32)
        self.action_space = spaces.MultiDiscrete([AHEAD_MAX + 1, *[TIMES_MAX + 1] * 3])

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begins a run, with a random seed if none is given.

        Raises:
            ScenarioError: The flow has no ``mode = "auto"`` with a deadline.
            RuntimeError: The run ended before its sender knew a round trip.
        """
        super().reset(seed=seed)
        self.close()
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
        actions: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._seen, self._actions = seen, actions
        parts = self._scenario._parts or Parts()
        parts = replace(parts, controllers={**parts.controllers, AGENT: lambda _: _Agent(seen, actions)})
        run = Scenario(self._scenario._text, self._scenario._path, [*self._scenario._sets, f"flow.controller={AGENT}"], parts)

        def work() -> None:
            try:
                seen.put(run.run(number))
            except _Stopped:
                pass
            except BaseException as error:
                seen.put(error)

        self._worker = threading.Thread(target=work, daemon=True)
        self._worker.start()
        first = self._next()
        if isinstance(first, Run):
            raise RuntimeError("the run ended before its sender knew a round trip; give it more messages, or less loss")
        self._last = first
        self._observed = _observation(first)
        return self._observed, {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Chooses the repair of the next half second."""
        if self._last is None:
            raise RuntimeError("the episode is over; call reset()")
        before = self._last
        self._actions.put(_plan(action))
        now = self._next()
        if isinstance(now, Run):
            self._last = None
            return self._observed, 0.0, True, False, {"run": now}
        self._last = now
        self._observed = _observation(now)
        return self._observed, now.score_since(before), False, False, {}

    def close(self) -> None:
        """Gives the run up that is under way."""
        if self._worker is not None and self._worker.is_alive():
            self._actions.put(_Stopped)
            self._worker.join()
        self._worker, self._last = None, None

    def _next(self) -> RepairSeen | Run:
        seen: RepairSeen | Run | BaseException = self._seen.get()
        if isinstance(seen, BaseException):
            self._last = None
            raise seen
        return seen


def _plan(action: Action) -> RepairPlan | None:
    if action is None:
        return None
    ahead, first, second, later = (int(part) for part in action)
    return ahead, (first, second, later)


def _observation(seen: RepairSeen) -> Observation:
    ahead, times = seen.plan
    spans = (span / seen.deadline for span in (seen.one_way, seen.round, seen.gap))
    numbers = (seen.loss, seen.loss_error, seen.behind_a_loss, *spans, seen.may_miss, seen.overhead, ahead / 8, *times)
    return np.array(numbers, np.float32)


def random_policy(env: RepairEnv, seed: int) -> Policy:
    """Any action, drawn from a generator of this seed."""
    space = spaces.MultiDiscrete(env.action_space.nvec, seed=seed)  # type: ignore[attr-defined]
    return lambda observation: space.sample()


def fixed_policy(ahead: int = 0, first: int = 1, second: int = 1, later: int = 1) -> Policy:
    """Always the same plan, `ahead` for eight messages; without arguments each loss is repeated once in each round, and nothing goes ahead."""
    return lambda observation: (ahead, first, second, later)


def auto_policy() -> Policy:
    """Fulmar's own choice."""
    return lambda observation: None


def baselines(env: RepairEnv, seed: int) -> dict[str, Policy]:
    """Policies to stand an agent beside: ``"random"``, ``"fixed"`` and ``"auto"``."""
    return {"random": random_policy(env, seed), "fixed": fixed_policy(), "auto": auto_policy()}


def evaluate(env: RepairEnv, policy: Policy, seeds: Iterable[int]) -> float:
    """The mean reward of a step over the episodes of these seeds.

    Raises:
        ValueError: There was no step: there are no seeds, or each run was over before a second choice.
    """
    rewards = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            observation, reward, over, _, _ = env.step(policy(observation))
            if not over:
                rewards.append(reward)
    if not rewards:
        raise ValueError("no step was made; give seeds, and runs of more than half a second")
    return sum(rewards) / len(rewards)
