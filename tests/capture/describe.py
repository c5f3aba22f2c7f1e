"""Everything a user could notice about a set of objects, as a flat table of path -> leaf.

`harness.py` describes the world of a program after every call, once run eagerly and once compiled,
and compares the two tables. A second visit of an object or of a storage names the path of the first
one, so that aliases are compared too.
"""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import sys
import types
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

SCALARS = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
BY_REPR = (range, slice, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
FINFO = (torch.finfo, torch.iinfo)
CODE_TYPES = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType)
SLOT_TYPES = (
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    type(vars(collections.namedtuple("Pair", ["first", "second"]))["first"]),
)


@dataclass(frozen=True)
class TensorLeaf:
    """What is compared of one tensor; `value` is a copy, so that later writes do not reach it."""

    header: str
    value: torch.Tensor

    def matches(self, other: Leaf, tolerance: bool) -> bool:
        if not isinstance(other, TensorLeaf) or self.header != other.header:
            return False
        if torch.equal(bits(self.value), bits(other.value)):
            return True
        if not tolerance or not (self.value.is_floating_point() or self.value.is_complex()):
            return False
        try:
            torch.testing.assert_close(self.value, other.value, equal_nan=True)
        except AssertionError:
            return False
        return True

    def __str__(self) -> str:
        shown = str(self.value.tolist())
        return f"{self.header} {shown if len(shown) < 400 else shown[:400] + '...'}"


Leaf = str | TensorLeaf


def bits(value: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor: NaN equals NaN, and 0.0 is not -0.0."""
    return value.reshape(-1).view(torch.uint8)


@dataclass
class Description:
    """The table being filled. `file` is the program's: only its frames, classes and functions are
    looked into. `compiled` is what the engine under test returned, which cannot be compared."""

    file: str
    compiled: object = None
    leaves: dict[str, Leaf] = field(default_factory=dict)
    seen: dict[int, str] = field(default_factory=dict)
    storages: dict[int, tuple[str, int]] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)  # so that no id is used twice

    def add(self, path: str, value: Any) -> None:
        """Describes `value`, and all that can be reached from it, under `path`."""
        kind = type(value)
        if value is self.compiled and value is not None:
            self.leaves[path] = "the compiled program"
        elif kind in SCALARS:
            self.leaves[path] = f"{kind.__name__} {value!r}"
        elif kind in BY_REPR or isinstance(value, FINFO):
            self.leaves[path] = f"{kind.__name__} {value!r}"
        elif isinstance(value, enum.Enum):
            self.leaves[path] = f"enum {kind.__qualname__}.{value.name}"
        elif kind is types.ModuleType:
            self.leaves[path] = f"module {value.__name__}"
        elif kind is tuple:
            self.leaves[path] = f"tuple of {len(value)}"
            self.add_items(path, value)
        elif kind is frozenset:
            self.leaves[path] = "frozenset"
            self.add_set(path, value)
        elif id(value) in self.seen:
            self.leaves[path] = f"the same object as {self.seen[id(value)]}"
        else:
            self.seen[id(value)] = path
            self.kept.append(value)
            self.add_object(path, value)

    def add_object(self, path: str, value: Any) -> None:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}" if self.is_foreign(kind) else kind.__name__
        self.leaves[path] = name
        if isinstance(value, torch.Tensor):
            self.add_tensor(path, value)
        elif isinstance(value, BaseException):
            self.add_exception(path, value)
        elif isinstance(value, type):
            self.add_class(path, value)
        elif kind is types.FunctionType:
            self.add_function(path, value)
        elif kind is types.MethodType:
            self.add(f"{path}.__func__", value.__func__)
            self.add(f"{path}.__self__", value.__self__)
        elif kind in CODE_TYPES or kind in SLOT_TYPES or kind is types.ClassMethodDescriptorType:
            self.add_builtin(path, value)
        elif kind is types.CellType:
            self.add_cell(path, value)
        elif not self.add_container(path, value) and not self.add_wrapper(path, value):
            self.add_instance(path, value)

    def add_tensor(self, path: str, value: torch.Tensor) -> None:
        if value.layout is not torch.strided:
            raise TypeError(f"{path}: the harness does not compare {value.layout} tensors")
        strides = [
            stride if size > 1 and value.numel() else "-"
            for size, stride in zip(value.shape, value.stride(), strict=True)
        ]
        alias = ""
        storage = value.untyped_storage()
        if storage.nbytes() > 0 and value.device.type != "meta":
            first, offset = self.storages.setdefault(storage._cdata, (path, value.storage_offset()))
            if first != path:
                alias = f" in the storage of {first} at {value.storage_offset() - offset:+}"
        flags = [
            word
            for word, holds in {
                "requires_grad": value.requires_grad,
                "leaf": value.is_leaf,
                "inference": value.is_inference(),
                "conjugated": value.is_conj(),
                "negated": value.is_neg(),
            }.items()
            if holds
        ]
        with torch.no_grad():
            plain = value.as_subclass(torch.Tensor).detach().resolve_conj().resolve_neg()
            copy = plain.clone(memory_format=torch.contiguous_format)
        kind = "Tensor" if type(value) is torch.Tensor else type(value).__qualname__
        header = (
            f"{kind} {value.dtype} {tuple(value.shape)} strides ({', '.join(map(str, strides))}) "
            f"{value.device} [{', '.join(flags)}]{alias}"
        )
        self.leaves[path] = TensorLeaf(header, copy)
        if (value.is_leaf or value.retains_grad) and value.grad is not None:
            self.add(f"{path}.grad", value.grad)
        self.add_attributes(path, getattr(value, "__dict__", {}))

    def add_exception(self, path: str, value: BaseException) -> None:
        self.add(f"{path}.args", value.args)
        for name in ("__cause__", "__context__"):
            if getattr(value, name) is not None:
                self.add(f"{path}.{name}", getattr(value, name))
        self.leaves[f"{path}.__suppress_context__"] = str(value.__suppress_context__)
        frames = []
        traceback = value.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename == self.file:
                frames.append(f"{code.co_name}:{traceback.tb_lineno}")
            traceback = traceback.tb_next
        self.leaves[f"{path}.__traceback__"] = " > ".join(frames)
        # What an exception of a library carries is the library's; a user may add notes to it.
        own = not self.is_foreign(type(value)) or type(value).__module__ == builtins.__name__
        self.add_attributes(
            path, {k: v for k, v in value.__dict__.items() if own or k == "__notes__"}
        )

    def add_class(self, path: str, value: type) -> None:
        self.leaves[path] = f"class {value.__module__}.{value.__qualname__}"
        if not self.is_foreign(value):
            self.add_attributes(
                path, {k: v for k, v in vars(value).items() if not k.startswith("__")}
            )

    def add_function(self, path: str, value: types.FunctionType) -> None:
        name = f"function {value.__module__}.{value.__qualname__}"
        self.leaves[path] = name
        if value.__code__.co_filename != self.file:
            return
        self.leaves[path] = f"{name} at line {value.__code__.co_firstlineno}"
        self.add(f"{path}.__defaults__", value.__defaults__)
        self.add(f"{path}.__kwdefaults__", value.__kwdefaults__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            self.add(f"{path}.<cell {name}>", cell)
        self.add_attributes(path, value.__dict__)

    def add_cell(self, path: str, value: types.CellType) -> None:
        try:
            contents = value.cell_contents
        except ValueError:
            self.leaves[path] = "an empty cell"
        else:
            self.add(f"{path}.contents", contents)

    def add_builtin(self, path: str, value: Any) -> None:
        self.leaves[path] = f"builtin {getattr(value, '__qualname__', value)}"
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, type | types.ModuleType):
            self.add(f"{path}.__self__", owner)

    def add_container(self, path: str, value: Any) -> bool:
        """Whether `value` is one; attributes of a subclass count too."""
        if isinstance(value, tuple):
            items: Iterable[Any] = tuple.__iter__(value)
        elif isinstance(value, list):
            items = list.__iter__(value)
        elif isinstance(value, collections.deque):
            items = collections.deque.__iter__(value)
            self.leaves[f"{path}.maxlen"] = str(value.maxlen)
        elif isinstance(value, dict):
            self.add_dict(path, value)
            items = ()
        elif isinstance(value, set | frozenset):
            self.add_set(path, value)
            items = ()
        elif isinstance(value, bytearray):
            self.leaves[path] = repr(value)
            items = ()
        elif isinstance(value, numpy.ndarray):
            strides = None if value.flags.c_contiguous else value.strides
            self.leaves[path] = f"array {value.dtype} {value.shape} {strides} {value.tobytes()!r}"
            items = ()
        elif isinstance(value, numpy.generic):
            self.leaves[path] = f"scalar {value.dtype} {value.tobytes()!r}"
            items = ()
        elif isinstance(value, types.MappingProxyType):
            self.add_dict(path, dict(value))
            items = ()
        elif isinstance(
            value, collections.abc.KeysView | collections.abc.ValuesView | collections.abc.ItemsView
        ):
            items = list(value)
        else:
            return False
        length = self.add_items(path, items)
        if length:
            self.leaves[f"{path}.length"] = str(length)
        self.add_attributes(path, getattr(value, "__dict__", {}))
        return True

    def add_dict(self, path: str, value: dict[Any, Any]) -> None:
        ordered = isinstance(value, collections.OrderedDict)
        base: Any = collections.OrderedDict if ordered else dict
        items = list(base.items(value))
        self.leaves[f"{path}.keys"] = f"{len(items)} keys"
        if isinstance(value, collections.defaultdict):
            self.add(f"{path}.default_factory", value.default_factory)
        # The keys of hooks come from a counter of the process, which runs on between two worlds.
        hooks = path.endswith(("_hooks", "_hooks_with_kwargs", "_hooks_always_called"))
        for number, (key, item) in enumerate(items):
            if type(key) in SCALARS and not hooks:
                # The number is the position: two dicts in another order are different.
                self.add(f"{path}[{number}: {key!r}]", item)
            else:
                if not hooks:
                    self.add(f"{path}.key({number})", key)
                self.add(f"{path}.item({number})", item)

    def add_set(self, path: str, value: Iterable[Any]) -> None:
        items = list(set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value))  # type: ignore[arg-type]
        scalars = sorted(
            f"{type(item).__name__} {item!r}" for item in items if type(item) in SCALARS
        )
        self.leaves[f"{path}.elements"] = f"{len(items)}: {', '.join(scalars)}"

    def add_wrapper(self, path: str, value: Any) -> bool:
        """Objects of the standard library that hold others."""
        if isinstance(value, functools.partial):
            parts = {"func": value.func, "args": value.args, "keywords": value.keywords}
        elif isinstance(value, property):
            parts = {"fget": value.fget, "fset": value.fset, "fdel": value.fdel}
        elif isinstance(value, staticmethod | classmethod):
            parts = {"__func__": value.__func__}
        elif isinstance(value, functools.cached_property):
            parts = {"func": value.func}
        elif isinstance(value, functools._lru_cache_wrapper):
            parts = {"__wrapped__": value.__wrapped__, "info": tuple(value.cache_info())}
        elif isinstance(value, torch.utils.hooks.RemovableHandle):
            parts = {}  # only a number of the process, see add_dict
        elif isinstance(value, weakref.ref):
            parts = {"referent": value()}
        elif isinstance(value, super):
            names = ("__self__", "__thisclass__")
            parts = {name: object.__getattribute__(value, name) for name in names}
        elif isinstance(value, types.GeneratorType):
            frame = value.gi_frame
            parts = {"at": frame and frame.f_lasti, "locals": frame and dict(frame.f_locals)}
        elif isinstance(value, torch.Generator):
            parts = {"state": value.get_state()}
        elif hasattr(type(value), "__next__") and type(value).__module__ in (
            "builtins",
            "itertools",
        ):
            parts = {"reduced": value.__reduce__()}
        else:
            return False
        self.add_attributes(path, parts)
        return True

    def add_instance(self, path: str, value: Any) -> None:
        attributes: dict[str, Any] = {}
        known = type(value) is object
        for base in reversed(type(value).__mro__):
            slots = base.__dict__.get("__slots__", ())
            known = known or "__slots__" in base.__dict__
            for name in (slots,) if isinstance(slots, str) else slots:
                slot = base.__dict__.get(name)
                try:
                    attributes[name] = slot.__get__(value, base)  # type: ignore[union-attr]
                except AttributeError:
                    continue  # a slot that was never filled
        try:
            attributes.update(object.__getattribute__(value, "__dict__"))
        except AttributeError:
            if not known:
                raise TypeError(f"{path}: the harness does not compare {type(value)}") from None
        self.add_attributes(path, attributes)

    def add_attributes(self, path: str, attributes: dict[str, Any]) -> None:
        for name, item in attributes.items():
            # Stock Dynamo leaves marks on what it has seen.
            marked = name.startswith(("_dynamo", "_torch_dynamo", "_is_torch_compile"))
            if name not in ("__weakref__", "__dict__", "_abc_impl") and not marked:
                self.add(f"{path}.{name}", item)

    def add_items(self, path: str, items: Iterable[Any]) -> int:
        number = -1
        for number, item in enumerate(items):
            self.add(f"{path}[{number}]", item)
        return number + 1

    def is_foreign(self, kind: type) -> bool:
        """Whether the class was defined outside the program's file."""
        if kind.__module__ == builtins.__name__:
            return True
        module = sys.modules.get(kind.__module__)
        return getattr(module, "__file__", None) != self.file


def first_difference(expected: Description, actual: Description, tolerance: bool) -> str | None:
    """The first path at which two descriptions differ, with both leaves; None if none does."""
    for path, leaf in expected.leaves.items():
        other = actual.leaves.get(path)
        if other is None:
            return f"{path}\n  eager:    {leaf}\n  compiled: nothing"
        same = leaf.matches(other, tolerance) if isinstance(leaf, TensorLeaf) else leaf == other
        if not same:
            return f"{path}\n  eager:    {leaf}\n  compiled: {other}"
    for path, leaf in actual.leaves.items():
        if path not in expected.leaves:
            return f"{path}\n  eager:    nothing\n  compiled: {leaf}"
    return None
