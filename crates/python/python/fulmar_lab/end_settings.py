"""The settings of an end, checked when they are given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from . import _native
from ._native import SecretKey
from .bounds import seconds

#: A port's numbers.
_PORT_MAX = 2**16 - 1


@dataclass(frozen=True)
class EndSettings:
    """The settings of an end, as the native half reads them."""

    rate: str | None
    share: Literal["own", "fair", "background"] | None
    deadline: float | None
    carrier: Literal["udp", "auto"]
    connect_timeout: float
    give_up_after: float

    def checked(self, key: SecretKey, peers: Iterable[str]) -> _native.NativeEndConfig:
        """The settings of an end with this key, whose peers have these.

        Raises:
            TypeError: One is of another type; the message names it and the type.
            ValueError: One is wrong; the message names it and the cure.
        """
        for name, example in (("rate", "50mbit"), ("share", "fair"), ("carrier", "udp")):
            if (value := getattr(self, name)) is not None and not isinstance(value, str):
                unit = " with its unit" if name == "rate" else ""
                raise TypeError(f'{name}={value!r}: give a text{unit}, such as "{example}"')
        for name in ("deadline", "connect_timeout", "give_up_after"):
            if (value := getattr(self, name)) is not None:
                seconds(name, value)
        # Not told as it is: it may be the text of a key file.
        if not isinstance(key, SecretKey):
            raise TypeError(f"key: give a SecretKey, not {_type(key)}; SecretKey(text) takes the text of a key file")
        if isinstance(peers, str) or not isinstance(peers, Iterable):
            raise TypeError(f"peers: give a list of public keys, such as [key.public], not {_type(peers)}")
        return _native.NativeEndConfig(key, [public_key(f"peers[{index}]", peer) for index, peer in enumerate(peers)], self)


def _type(value: object) -> str:
    return "one text" if isinstance(value, str) else f"a {type(value).__name__}"


def public_key(name: str, key: str) -> str:
    """The public key of an argument, by its name.

    Raises:
        TypeError: It is no text.
        ValueError: It is no key.
    """
    if isinstance(key, SecretKey):
        raise TypeError(f"{name}: give the peer's public key, not a SecretKey; it is the text that `key.public` has there")
    if not isinstance(key, str):
        raise TypeError(f"{name}: give the peer's public key, a text of 44 characters, not a {type(key).__name__}")
    _native.check_public_key(name, key)
    return key


def host_and_port(name: str, address: str) -> tuple[str, int]:
    """Host and port of an argument, by its name.

    Raises:
        TypeError: It is no text.
        ValueError: It has no host, or no port.
    """
    if not isinstance(address, str):
        raise TypeError(f"{name}={address!r}: give a text, such as '192.0.2.7:4914'")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _PORT_MAX:
        raise ValueError(f"{name}={address!r}: give a host and a port, such as '192.0.2.7:4914' or '[2001:db8::7]:4914'")
    return host.removeprefix("[").removesuffix("]"), int(port)
