"""Registry: names users type, the parts behind them, and what each is.

A part's module is imported when it is first built, so that listing what exists never imports a heavy library.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from foretide.errors import InvalidConfig, MissingExtra, unknown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """One registry line. ``target`` is ``module:attribute``; ``constants`` are passed to it; ``extra`` names the optional
    dependency group it needs."""

    name: str
    target: str
    summary: str
    source: str = ""
    extra: str | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)


class Registry(Generic[T]):
    """Parts of one kind by name, in the order they were declared."""

    def __init__(self, kind: str, parts: tuple[Part, ...]) -> None:
        self.kind = kind
        self._parts = {p.name: p for p in parts}
        if len(self._parts) != len(parts):
            raise ValueError(f"a {kind} is registered twice")

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts.values())

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            raise unknown(self.kind, name, self._parts)
        return self._parts[name]

    def constants(self, name: str) -> tuple[str, ...]:
        """The constants that a part takes."""
        return tuple(p for p in inspect.signature(self._factory(name)).parameters if p != "self")

    def build(self, name: str, **constants: Any) -> T:
        """A new instance; an unknown constant is an error that lists the valid ones."""
        valid = self.constants(name)
        for constant in constants:
            if constant not in valid:
                known = ", ".join(valid) or "none"
                raise InvalidConfig(f"{self.kind} '{name}' has no constant '{constant}'; it takes: {known}")
        return cast(T, self._factory(name)(**{**self[name].constants, **constants}))

    def _factory(self, name: str) -> Callable[..., Any]:
        part = self[name]
        module, _, attribute = part.target.partition(":")
        try:
            return cast("Callable[..., Any]", getattr(importlib.import_module(module), attribute))
        except ModuleNotFoundError as error:
            if part.extra is None or (error.name or "").startswith("foretide"):
                raise
            raise MissingExtra(
                f"{self.kind} '{name}' needs {error.name}, which is not installed: pip install 'foretide[{part.extra}]'"
            ) from error
