"""The code of a part as a digest: what its results depend on, as far as Python shows it.

Compiled code counts rather than text: it is what runs, it is there for what was typed at a prompt, and comments change
nothing. With a function count its defaults, its closure, and the functions and values of its module that it names; with a
class its bases and all that it has. A module of one's own counts as its file, wherever it is imported, and a library by
name and version.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import secrets
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any, Final, NamedTuple

_PLAIN: Final = (type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes)
#: What a class has that says nothing of what it does, or stands elsewhere too.
_BESIDE: Final = frozenset(
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ __dict__ __doc__ __firstlineno__ __module__ "
    "__static_attributes__ __weakref__ _abc_impl".split()
)
_LIBRARIES: Final = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")})


def digest_of(makers: Iterable[tuple[str, Any]]) -> str:
    """A digest of the code of makers of parts, by their names. Where code or a value cannot be read, it equals no other."""
    makers = list(makers)
    try:
        # Again if modules were imported by it: a package counts by all of its modules that are in use.
        loaded = -1
        while loaded != len(sys.modules):
            loaded = len(sys.modules)
            text = _Reader(maker for _, maker in makers).text(makers)
    except (_Unreadable, RecursionError):
        return f"unreadable {secrets.token_hex(16)}"
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


class _Import(NamedTuple):
    """An import inside a function: the dots before the name, the name, and the names that are taken from it."""

    level: int
    name: str
    names: tuple[str, ...]


class _Unreadable(Exception):
    """A value that Python cannot take apart."""


class _Reader:
    def __init__(self, makers: Iterable[Any]) -> None:
        #: The packages of the makers, which are followed wherever they are installed.
        self._homes = {_package(_unwrapped(maker)) for maker in makers} - {""}
        #: What was met, by its identity, and kept alive so that this stays its own.
        self._met: dict[int, tuple[int, Any]] = {}

    def text(self, thing: Any) -> str:
        kind = type(thing)
        if kind in _PLAIN:
            return repr(thing)
        if kind is tuple:
            return f"({', '.join(map(self.text, thing))})"
        if isinstance(thing, CodeType):
            return self._code(thing)
        if isinstance(thing, ModuleType):
            return self._module(thing.__name__)
        if id(thing) in self._met:
            return f"#{self._met[id(thing)][0]}"
        self._met[id(thing)] = (len(self._met), thing)
        return f"{kind.__name__}: {self._parts(thing)}"

    def _parts(self, thing: Any) -> str:
        """The text of what is made of others, and may be made of itself."""
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, FunctionType):
            return self._function(thing)
        if type(thing) is list:
            return self.text(tuple(thing))
        if type(thing) in (dict, MappingProxyType):
            return self.text(tuple(thing.items()))
        if type(thing) in (set, frozenset):
            return f"{{{', '.join(sorted(map(self.text, thing)))}}}"
        if isinstance(thing, (staticmethod, classmethod)):
            return self.text(thing.__func__)
        if isinstance(thing, property):
            return self.text((thing.fget, thing.fset, thing.fdel))
        if isinstance(thing, functools.cached_property):
            return self.text(thing.func)
        if isinstance(thing, (GetSetDescriptorType, MemberDescriptorType)):
            return thing.__qualname__
        return self._object(thing)

    def _class(self, kind: type) -> str:
        if self._is_library(_package(kind)):
            return f"{self._library(kind.__module__)}.{kind.__qualname__}"
        has = sorted((name, value) for name, value in vars(kind).items() if name not in _BESIDE)
        return f"{kind.__qualname__} {self.text((type(kind), kind.__bases__))} {self.text(tuple(has))}"

    def _function(self, function: FunctionType) -> str:
        if self._is_library(_package(function)):
            return f"{self._library(function.__module__)}.{function.__qualname__}"
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # It is not bound yet.
                cells.append(...)
        named = [(name, function.__globals__[name]) for name in sorted(_globals(function.__code__)) if name in function.__globals__]
        imported = [self._imported(wanted, function.__globals__) for wanted in _imports(function.__code__)]
        has = (function.__defaults__, function.__kwdefaults__, vars(function), tuple(cells), tuple(named), tuple(imported))
        return f"{self._code(function.__code__)} {self.text(has)}"

    def _imported(self, wanted: _Import, names: Mapping[str, Any]) -> str:
        """The module that an import inside a function takes, with those of the names in it that are modules themselves."""
        try:
            name = importlib.util.resolve_name("." * wanted.level + wanted.name, names.get("__package__"))
            if name.partition(".")[0] in sys.stdlib_module_names:
                return name
            module = importlib.import_module(name)
            for inner in wanted.names:
                if inner != "*" and not hasattr(module, inner):
                    importlib.import_module(f"{name}.{inner}")
        except Exception as error:
            raise _Unreadable from error
        return self._module(name)

    def _code(self, code: CodeType) -> str:
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        # Sets of constants stand in an order that differs between processes; as values they are sorted.
        constants = ", ".join(self._parts(value) if type(value) is frozenset else self.text(value) for value in code.co_consts)
        return f"{code.co_name} {shape} {names} {code.co_code.hex()} {code.co_exceptiontable.hex()} [{constants}]"

    def _object(self, thing: Any) -> str:
        """The text of any other object: what it would be pickled from."""
        by_kind = copyreg.dispatch_table.get(type(thing))
        try:
            reduced = by_kind(thing) if by_kind else thing.__reduce_ex__(4)
            if not isinstance(reduced, str):
                made, *rest = reduced
                reduced = (made, *(list(part) if isinstance(part, Iterator) else part for part in rest))
        except Exception as error:
            raise _Unreadable from error
        return self.text((type(thing), reduced, getattr(thing, "__wrapped__", None)))

    def _module(self, name: str) -> str:
        """A module by its name; one that is no library by its files, and those of its package that are in use."""
        package = name.partition(".")[0]
        if self._is_library(package):
            return self._library(name)
        digest = hashlib.blake2b(digest_size=16)
        for other, module in sorted(sys.modules.items()):
            if other.partition(".")[0] == package and (file := getattr(module, "__file__", None)):
                try:
                    digest.update(Path(file).read_bytes())
                except OSError as error:
                    raise _Unreadable from error
        return f"{name} {digest.hexdigest()}"

    def _is_library(self, package: str) -> bool:
        if package in self._homes:
            return False
        if package in sys.stdlib_module_names or package in ("", __package__):
            return True
        file = getattr(sys.modules.get(package), "__file__", None)
        return bool(file and file.startswith(_LIBRARIES))

    def _library(self, module: str) -> str:
        package = sys.modules.get(module.partition(".")[0])
        return f"{module} {getattr(package, '__version__', '')}"


def _unwrapped(maker: Any) -> Any:
    while isinstance(maker, functools.partial):
        maker = maker.func
    return maker


def _package(thing: Any) -> str:
    """The package in which a class, a function or the class of an object was written; "" for Python's own."""
    module = getattr(thing, "__module__", None) or ("?" if isinstance(thing, FunctionType) else type(thing).__module__)
    package = str(module).partition(".")[0]
    return "" if package in sys.stdlib_module_names else package


def _globals(code: CodeType) -> set[str]:
    """The names of its module that code reads."""
    named = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return named.union(*(_globals(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _imports(code: CodeType) -> list[_Import]:
    """The imports in code, in their order: of each, level and names are the two constants before it."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    found = [
        _Import(level.argval, str(step.argval), names.argval or ())
        for level, names, step in zip(steps, steps[1:], steps[2:], strict=False)
        if step.opname == "IMPORT_NAME"
    ]
    return found + [wanted for inner in code.co_consts if isinstance(inner, CodeType) for wanted in _imports(inner)]
