"""Forecasters by name: one line per method."""

from __future__ import annotations

from foretide.parts import Forecaster
from foretide.registry import Part, Registry

FORECASTERS: Registry[Forecaster] = Registry(
    "forecaster",
    (Part("basic", "foretide.forecast.basic:Basic", "the next windows equal the last one", "PA-SPS, section 4"),),
)
