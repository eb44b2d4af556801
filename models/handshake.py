#!/usr/bin/env python3
"""Every history of two ends that call each other (docs/protocol/session.md, sections 2 and 3), and of early data (section 6).

    models/handshake.py                          the bounds of `make prove` (half a minute)
    models/handshake.py CALLS CALLS RESTARTS     others: calls of A, calls of B, restarts of both (2 2 1: some minutes, 1 GB)
    models/handshake.py --show RULE              the history that goes wrong without this rule

The network is a set of all that was ever sent, so whatever is in it may come now, later, again or never, to an end that knows it or
has forgotten it. Cryptography is taken for granted: who made no keys has none, and nothing is forged but cookies. An end says other
capabilities (wire, cipher, unchecked, path acks) after each restart. Histories are bounded by how often each end begins a call, how often
ends restart, and by three answers of each.

Each rule of the page is also tried without: the model has to notice, else it shows nothing.
"""

import argparse
import collections
import dataclasses
import functools
import sys
import time

# The end with the larger static key.
WINNER = "A"
# Rounds of an undisturbed network, each a round trip of everything that an end repeats, until which both ends must have one session.
ROUNDS = 24
OWN_TRIES = 4
# Answers of each end to calls of a history. Two old calls played in turn, each as soon as the offer to the other is 5 s old, would go
# on for ever.
ANSWERS_MAX = 3

# What the page asks for, and what each part is for.
RULES = {
    "confirmation": "keys offered are used only after something came under them",
    "epoch": "an initiation is refused whose epoch is not above the last confirmed one's",
    "boot": "after another boot earlier keys are not accepted",
    "hello": "hellos are authenticated, and what both ends do follows from the two",
    "cookie": "a new cookie takes the place of one that came before",
    "one salt": "another salt's epoch must be larger",
    "note": "epochs of salts from before a restart are on the disk",
}
# Nothing goes wrong without this one: it saves a second handshake.
SPARING = "yield"
# Calls of A and of B, restarts of both together.
BOUNDS = [(2, 2, 0), (2, 1, 1), (1, 2, 1)]


@dataclasses.dataclass(frozen=True)
class Call:
    epoch: int
    tries: int = 0


@dataclasses.dataclass(frozen=True)
class Offer:
    keys: tuple
    boot: int
    recent: bool = True


@dataclasses.dataclass(frozen=True)
class End:
    name: str
    boot: int = 0
    # Kept on the disk.
    epoch: int = 0
    call: Call = None
    offer: Offer = None
    keys: tuple = None
    # The boots that the hellos of these keys said: what both ends do follows from them.
    hellos: tuple = None
    heard: bool = False
    before: tuple = None
    seen: int = 0
    their_boot: int = None
    answered: tuple = None
    # For the properties: how many answers it gave, ever; whose initiations it took keys of into use as their responder, in this life and ever.
    answers: int = 0
    took: frozenset = frozenset()
    ever: frozenset = frozenset()

    def __hash__(self):
        """Kept, since an end is looked up often."""
        return self.kept_hash

    @functools.cached_property
    def kept_hash(self):
        return hash(tuple(self.__dict__[field] for field in FIELDS))

    @property
    def other(self):
        return "B" if self.name == "A" else "A"

    def accepts(self, keys):
        return keys is not None and keys in (self.keys, self.before, self.offer and self.offer.keys)

    def with_keys(self, keys, boot, heard, without):
        """These keys are taken into use."""
        lost = self.their_boot not in (None, boot) and "boot" != without
        hellos = (self.boot, boot) if keys[0] == self.name else (boot, self.boot)
        return dataclasses.replace(self, keys=keys, hellos=hellos, heard=heard, before=None if lost else self.keys, their_boot=boot, offer=None)


FIELDS = tuple(field.name for field in dataclasses.fields(End))


class Wrong(Exception):
    """A property that does not hold."""


def take(end, message, without=None):
    """The end after a message, and what it sends; (None, ()) where nothing changes."""
    kind = message[0]
    if kind == "initiation":
        return take_initiation(end, message, without)
    if kind == "response":
        _, keys, boot = message
        if end.call is None or keys[:2] != (end.name, end.call.epoch):
            return None, ()
        # An initiator that completes a handshake drops keys that it offered.
        end = dataclasses.replace(end.with_keys(keys, boot, False, without), call=None)
        return end, (("data", keys, end.name),)
    _, keys, sender = message
    if sender == end.name or not end.accepts(keys):
        return None, ()
    if end.offer and keys == end.offer.keys:
        initiation = keys[:2]
        if initiation in end.took:
            raise Wrong("keys of one initiation were taken into use twice")
        if any(epoch > keys[1] for _, epoch in end.ever):
            raise Wrong("keys of an older epoch replaced those of a newer one")
        end = end.with_keys(keys, end.offer.boot, True, without)
        end = dataclasses.replace(end, seen=keys[1], took=end.took | {initiation}, ever=end.ever | {initiation})
        return end, (("data", keys, end.name),)
    if keys == end.keys and not end.heard:
        return dataclasses.replace(end, heard=True), ()
    return None, ()


def take_initiation(end, message, without):
    _, caller, boot, epoch = message
    if caller == end.name or end.answered == (caller, epoch):
        # Ours is made for the other's key; a repetition has the response that it had.
        return None, ()
    if epoch <= end.seen and without != "epoch":
        return None, ()
    if end.offer and end.offer.recent and epoch <= end.offer.keys[1]:
        return None, ()
    if end.call and end.name == WINNER and end.call.tries <= OWN_TRIES:
        return None, ()
    if end.call and end.name != WINNER and without != "yield":
        end = dataclasses.replace(end, call=None)
    if (caller, epoch) in end.took:
        raise Wrong("an initiation that led to keys in use was answered again by other keys")
    keys = (caller, epoch, end.answers)
    end = dataclasses.replace(end, answers=end.answers + 1, answered=(caller, epoch), offer=Offer(keys, boot))
    sent = (("response", keys, end.boot),)
    if without == "confirmation":
        return dataclasses.replace(end.with_keys(keys, boot, False, without), offer=None), sent
    return end, sent


def alone(end, calls, restarts_left):
    """What an end, or time, does without a message: the end after it, what it sends, restarts used."""
    if end.epoch < calls[end.name]:
        called = dataclasses.replace(end, epoch=end.epoch + 1, call=Call(end.epoch + 1))
        yield called, (("initiation", end.name, end.boot, end.epoch + 1),), 0
    if end.call and end.call.tries <= OWN_TRIES:
        yield dataclasses.replace(end, call=dataclasses.replace(end.call, tries=OWN_TRIES + 1)), (), 0
    if end.offer and end.offer.recent:
        yield dataclasses.replace(end, offer=dataclasses.replace(end.offer, recent=False)), (), 0
    if restarts_left:
        yield End(end.name, boot=end.boot + 1, epoch=end.epoch, answers=end.answers, ever=end.ever), (), 1


def steps(state, calls, without):
    """States after one step, each with whether only a message was delivered."""
    ends, wire, restarts = state
    if without == "hello":
        wire = wire | {(kind, keys, boot + 1) for kind, keys, *boot in wire if kind == "response" for boot in boot}
    for place, end in enumerate(ends):
        other = ends[1 - place]
        for after, sent, used in alone(end, calls, restarts):
            pair = (after, other) if place == 0 else (other, after)
            yield (pair, wire | set(sent), restarts - used), None
        for message in wire:
            after, sent = take(end, message, without)
            if after is not None and after.answers <= ANSWERS_MAX:
                pair = (after, other) if place == 0 else (other, after)
                yield (pair, wire | set(sent), restarts), (end, message, after, other)


def check(step):
    """What one delivered message may do."""
    end, message, after, other = step
    if after.keys != end.keys:
        keys = after.keys
        # Who takes keys into use as their responder heard the initiator under them: it has them, or has gone on, or restarted.
        if keys[0] != end.name and not (other.accepts(keys) or other.boot > after.their_boot or other.epoch > keys[1]):
            raise Wrong("keys are used that the initiator never had")
        if other.keys == keys and other.hellos != after.hellos:
            raise Wrong("both ends use the same keys, each for another wire or cipher")
        if end.their_boot not in (None, after.their_boot) and after.before is not None:
            raise Wrong("keys from before the other's restart are still accepted")


def is_one_session(ends):
    one, other = ends
    return one.keys is not None and one.keys == other.keys and one.heard and other.heard


def forget_past(end):
    """The end without what only the properties ask for."""
    return dataclasses.replace(end, hellos=None, took=frozenset(), ever=frozenset())


@functools.cache
def settle(ends, cookies, without):
    """Rounds of an undisturbed network until both ends have one session. `cookies` are what each caller has to begin with, where everybody
    is under load: none, or one that somebody made up.
    """
    ends = {end.name: end for end in ends}
    has = dict(zip(ends, cookies)) if cookies else None
    fresh = []

    def send(name, messages):
        fresh.extend((ends[name].other, message) for message in messages)

    for number in range(ROUNDS):
        if is_one_session(tuple(ends.values())):
            return number
        silent = {}
        for name, end in list(ends.items()):
            # Older than the 5 s of an offer, and than the 60 s of keys that were replaced, after some rounds.
            if number == 2 and end.offer:
                end = dataclasses.replace(end, offer=dataclasses.replace(end.offer, recent=False))
            if end.call:
                end = dataclasses.replace(end, call=dataclasses.replace(end.call, tries=end.call.tries + 1))
            ends[name], silent[name] = end, True
            if end.keys:
                send(name, [("data", end.keys, name)])
            if end.call:
                send(name, [("initiation", name, end.boot, end.call.epoch)])
        while fresh:
            name, message = fresh.pop(0)
            end = ends[name]
            if message[0] == "initiation" and has and has[end.other] != "right":
                # Under load it is answered by a cookie, with which the caller repeats it.
                if has[end.other] == "" or without != "cookie":
                    has[end.other] = "right"
                    send(end.other, [message])
                continue
            if message[0] == "data" and end.accepts(message[1]):
                silent[name] = False
            after, sent = take(end, message, without)
            # A repetition of what was answered last has the same response.
            if message[0] == "initiation" and end.answered == (message[1], message[3]):
                sent = [("response", (*end.answered, end.answers - 1), end.boot)]
            if after is not None:
                ends[name] = after
            send(name, sent)
        for name, end in list(ends.items()):
            if silent[name] and end.call is None:
                ends[name] = end = dataclasses.replace(end, epoch=end.epoch + 1, call=Call(end.epoch + 1))
    raise Wrong(f"no session after {ROUNDS} undisturbed rounds")


def explore(calls_of_a, calls_of_b, restarts, without=None):
    """States, and the most rounds that any needs; raises `Wrong` with the shortest history that shows it."""
    first = ((End("A"), End("B")), frozenset(), restarts)
    calls = {"A": calls_of_a, "B": calls_of_b}
    came_from, queue, rounds = {first: (None, None)}, collections.deque([first]), 0

    def history(state):
        told = []
        while state is not None:
            state, step = came_from[state]
            if step:
                told.append(f"{step[0].name} takes {step[1]}")
            elif state is not None:
                told.append("a call, time or a restart")
        return told[::-1]

    while queue:
        state = queue.popleft()
        try:
            for cookies in (None, ("", ""), ("made up", "made up")):
                rounds = max(rounds, settle(tuple(map(forget_past, state[0])), cookies, without))
            for after, step in steps(state, calls, without):
                if step:
                    check(step)
                if after not in came_from:
                    came_from[after] = state, step
                    queue.append(after)
        except Wrong as wrong:
            raise Wrong(f"{wrong}; after: {'; '.join(history(state))}; then {state[0]}") from None
    return len(came_from), rounds


def explore_early(calls, restarts, floor, ahead=0, without=None):
    """Early data at a receiver that restarts. `floor` is `disk` or `clock`; by the latter its clock is so many calls behind the sender's."""
    # Sender's epoch; receiver's salt, its window, its floor; what it acted on, ever; clock.
    first = (0, None, frozenset(), 0, frozenset(), restarts)
    seen, queue = {first}, collections.deque([first])
    while queue:
        sent, salt, window, lowest, acted, left = queue.popleft()
        after = [(sent + 1, salt, window, lowest, acted, left)] if sent < calls else []
        if left:
            known = max((epoch for epoch, _ in acted), default=0)
            kept = {"disk": known, "clock": max(0, sent - ahead)}[floor] if without != "note" else 0
            after.append((sent, None, frozenset(), kept, acted, left - 1))
        for epoch in range(1, sent + 1):
            for counter in (0, 1):
                may = epoch == salt or epoch > lowest and (salt is None or epoch > salt or without == "one salt")
                if not may or (epoch == salt and counter in window):
                    continue
                if (epoch, counter) in acted:
                    raise Wrong("early data was acted on twice")
                took = window | {counter} if epoch == salt else frozenset({counter})
                after.append((sent, epoch, took, lowest, acted | {(epoch, counter)}, left))
        for state in after:
            if state not in seen:
                seen.add(state)
                queue.append(state)
    return len(seen)


def shown(run):
    """What is wrong, if anything."""
    try:
        run()
    except Wrong as wrong:
        return str(wrong)
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bounds", type=int, nargs="*", metavar="N")
    arguments.add_argument("--show", choices=RULES)
    given = arguments.parse_args()
    if given.show:
        print(without(given.show))
        return
    if len(given.bounds) not in (0, 3):
        arguments.error("three bounds are needed: calls of A, calls of B, restarts")
    for bounds in [tuple(given.bounds)] if given.bounds else BOUNDS:
        began = time.monotonic()
        states, rounds = explore(*bounds)
        print(f"handshake: {states} states hold, one session after at most {rounds} undisturbed rounds; "
              f"calls {bounds[0]} and {bounds[1]}, restarts {bounds[2]} ({time.monotonic() - began:.0f} s)", flush=True)
    states = explore_early(3, 2, "disk")
    print(f"early data: {states} states hold with a note on the disk, {explore_early(3, 2, 'clock')} with clocks that agree")
    blind = [rule for rule in RULES if without(rule) is None]
    behind = shown(lambda: explore_early(3, 2, "clock", ahead=1))
    print("early data: " + (f"{behind}, where the sender's clock is ahead and nothing is kept, as the page says" if behind else "expected otherwise"))
    print(f"handshake: noticed when they are left out: {', '.join(rule for rule in RULES if rule not in blind)}")
    explore(2, 1, 0, SPARING)
    print(f"handshake: without {SPARING} the same states hold, as the page of the model says")
    if blind or not behind:
        sys.exit(f"handshake: nothing goes wrong without: {', '.join(blind) or 'a clock that agrees'}")


def without(rule):
    """What goes wrong without a rule."""
    if rule in ("one salt", "note"):
        return shown(lambda: explore_early(3, 2, "disk", without=rule))
    return shown(lambda: explore(2, 1, 0, rule)) or shown(lambda: explore(1, 1, 1, rule))


if __name__ == "__main__":
    main()
