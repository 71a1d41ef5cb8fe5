"""Registry: names users type, the parts behind them, and what each is.

A part's module is imported when it is first built, so that listing what exists never imports a
heavy library.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Generic, TypeVar, cast

from foretide.errors import InvalidConfig, missing_extra, unknown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """One registry line. ``target`` is ``module:attribute``; ``constants`` are passed to it;
    ``extra`` names the optional dependency group it needs.
    """

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

    def add(self, part: Part) -> None:
        """Register one more part, for as long as this process runs."""
        if part.name in self._parts:
            raise InvalidConfig(
                f"{self.kind} '{part.name}' is registered already: use another name"
            )
        self._parts[part.name] = part

    def remove(self, name: str) -> None:
        """Forget a part."""
        del self._parts[self[name].name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            raise unknown(self.kind, name, self._parts)
        return self._parts[name]

    def constants(self, name: str) -> tuple[str, ...]:
        """The constants that a part takes."""
        return tuple(self._declared(name))

    def build(self, name: str, **constants: Any) -> T:
        """A new instance; an unknown constant is an error that lists the valid ones, and so is text
        in place of a number.
        """
        valid = self._declared(name)
        for constant, value in constants.items():
            if constant not in valid:
                known = ", ".join(valid) or "none"
                raise InvalidConfig(
                    f"{self.kind} '{name}' has no constant '{constant}'; it takes: {known}"
                )
            if wanted := _wanted(valid[constant], value):
                raise InvalidConfig(
                    f"{self.kind} '{name}': {constant} must be {wanted}, it is {value!r}"
                )
        factory, values = self._factory(name), {**self[name].constants, **constants}
        settings = getattr(factory, "Settings", None)
        return cast(T, factory(**values) if settings is None else factory(settings(**values)))

    def _declared(self, name: str) -> dict[str, str]:
        """A part's constants and how each is annotated: those of its record ``Settings`` when it
        has one, else those of its constructor.
        """
        factory = self._factory(name)
        parameters = inspect.signature(getattr(factory, "Settings", factory)).parameters
        return {p: str(declared.annotation) for p, declared in parameters.items() if p != "self"}

    def _factory(self, name: str) -> Callable[..., Any]:
        part = self[name]
        module, _, attribute = part.target.partition(":")
        try:
            return cast("Callable[..., Any]", getattr(importlib.import_module(module), attribute))
        except ModuleNotFoundError as error:
            if part.extra is None or (error.name or "").startswith("foretide"):
                raise
            raise missing_extra(part.extra, f"{self.kind} '{name}' needs {error.name}") from error


def _wanted(annotation: str, value: Any) -> str | None:
    """What kind of number a constant should have been; None when it is right, or is no number by
    its annotation.
    """
    kind, _, other = annotation.partition(" | ")
    if kind not in ("int", "float") or other not in ("", "None") or (other and value is None):
        return None
    number = Integral if kind == "int" else Real
    right = isinstance(value, number) and not isinstance(value, bool) and value == value
    return None if right else "a whole number" if kind == "int" else "a number"
