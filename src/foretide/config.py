"""Settings from a TOML file: typed, every one with a default that works, every mistake a sentence
that names key and file.

A file may name a built-in system and change any part or constant of it::

    [system]
    name = "drs"                      # start from this one
    forecaster = "bigru"              # and combine parts freely
    [system.planner_constants]
    t_max_s = 0.5
    [system.guards.cool-down]
    seconds = 120
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from foretide.errors import ForetideError, InvalidConfig
from foretide.model import Mode, Prices
from foretide.systems import System, system


class SystemSettings(msgspec.Struct, frozen=True):
    """Which system, and what to change in it. What is left out stays as the system declares it."""

    name: str | None = None
    forecaster: str | None = None
    quantile: float | None = None
    planner: str | None = None
    grouping: str | None = None
    forecaster_constants: dict[str, Any] = {}
    planner_constants: dict[str, Any] = {}
    guards: dict[str, dict[str, Any]] = {}
    horizon: int | None = None
    plan_every: int | None = None
    lookback: int | None = None
    fit_every: int | None = None
    horizon_s: float | None = None
    plan_every_s: float | None = None
    skip_lead: bool | None = None

    def build(self, default: str = "foretide") -> System:
        """The system with these changes; ``default`` is changed where none is named. Constants of a
        part that was exchanged for another are dropped, not carried over.
        """
        base = system(self.name or default)
        changes: dict[str, Any] = {"guards": {**base.guards, **self.guards}}
        for name in ("grouping", "quantile"):
            if getattr(self, name) is not None:
                changes[name] = getattr(self, name)
        for kind in ("forecaster", "planner"):
            part = getattr(self, kind) or getattr(base, kind)
            own = getattr(base, f"{kind}_constants") if part == getattr(base, kind) else {}
            changes[kind] = part
            changes[f"{kind}_constants"] = {**own, **getattr(self, f"{kind}_constants")}
        given: dict[str, Any] = {
            n: getattr(self, n)
            for n in ("lookback", "fit_every", "horizon_s", "plan_every_s", "skip_lead")
            if getattr(self, n) is not None
        }
        for n in ("horizon", "plan_every"):  # windows replace the seconds that a system declares
            if getattr(self, n) is not None:
                given = {f"{n}_s": None, n: getattr(self, n), **given}
        changes["cadence"] = replace(base.cadence, **given)
        return replace(base, **changes)


class Settings(msgspec.Struct, frozen=True):
    """All settings of a run. A simulation takes the system and the prices, a live run all of
    it.
    """

    mode: Mode = "advise"
    window_s: float = 10.0
    target_latency_s: float | None = None
    share: float | None = None
    runs_dir: str = "runs"
    system: SystemSettings = SystemSettings()
    prices: Prices = Prices()


def load_settings(path: Path | str) -> Settings:
    """Settings from a TOML file."""
    try:
        with open(path, "rb") as f:
            table = tomllib.load(f)
    except OSError as error:
        raise InvalidConfig(f"cannot read the settings file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path} is not valid TOML: {error}") from error
    return parse_settings(table, str(path))


def parse_settings(table: Mapping[str, Any], where: str = "settings") -> Settings:
    """Settings from plain values; ``where`` is named in every error."""
    for key, valid in _unknown_keys(table, Settings):
        near = difflib.get_close_matches(key.rsplit(".", 1)[-1], valid, n=1, cutoff=0.0)
        raise InvalidConfig(
            f"{where}: unknown key '{key}'; the nearest valid key is '{near[0]}' (valid: "
            f"{', '.join(valid)})"
        )
    try:
        settings = msgspec.convert(table, Settings)
        for name, seconds in (
            ("window_s", settings.window_s),
            ("target_latency_s", settings.target_latency_s),
        ):
            if seconds is not None and not 0 < seconds < float("inf"):
                raise InvalidConfig(f"{name} must be more than 0 seconds")
        system = settings.system.build()
        (
            system.new_forecaster(),
            system.new_planner(),
            system.new_guards(),
        )  # unknown parts and constants are errors now, not later
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `$.")
        raise InvalidConfig(f"{where}: key '{at.rstrip('`') or '(top)'}': {problem}") from error
    except ForetideError as error:
        raise InvalidConfig(f"{where}: {error}") from error
    return settings


def _unknown_keys(
    table: Mapping[str, Any], record: type, prefix: str = ""
) -> Iterator[tuple[str, list[str]]]:
    fields = get_type_hints(record)
    for key, value in table.items():
        if key not in fields:
            yield prefix + key, sorted(fields)
        elif isinstance(value, Mapping) and fields[key] in (SystemSettings, Prices):
            yield from _unknown_keys(value, fields[key], f"{prefix}{key}.")
