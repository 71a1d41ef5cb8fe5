"""What came before the run: where it is placed, what replaces it, and when it is not believed."""

import numpy as np
import pytest

from foretide.history import History
from foretide.model import Array, Forecast, Sample, Snapshot
from foretide.plan.foretide import Foretide
from foretide.plan.promise.past import FIRST, Past
from foretide.systems import system
from foretide.topology import Operator, Topology

ONE = Topology((Operator("a"),))
TWO = Topology((Operator("a"), Operator("b"), Operator("c", inputs=("a", "b"))))
WINDOW_S = 5.0


def sample(rate: float) -> Sample:
    count = WINDOW_S * rate
    return Sample(count, count, 0.0, 5, busy_s=0.04 * count, offered=count)


def run(
    past: Past, rates: list[float], history: History | None = None, topology: Topology = ONE
) -> tuple[Array, History]:
    """The load after windows of these rates, a NaN being one that was not measured."""
    followed = history or History(topology)
    begin = followed.now if len(followed) else 0.0
    for i, rate in enumerate(rates):
        at = begin + WINDOW_S * (i + 1)
        if np.isnan(rate):
            followed.gap(at)
            continue
        samples = {n: sample(rate) for n in topology.names}
        followed.append(Snapshot(at, WINDOW_S, samples, lead_s=10.0))
        past.begin(followed)
        whole = past.load(followed, 1_000)
    return whole, followed


def steady(rate: float) -> dict[str, Forecast]:
    return {"a": Forecast((rate,) * 30, (rate,) * 30)}


def recorded(*rates: float) -> Past:
    past = Past()
    past.remember(np.array(rates))
    return past


def test_the_past_ends_where_the_run_begins() -> None:
    whole, _ = run(recorded(1.0, 2.0, 3.0), [2.0, 1.0])
    assert whole.tolist() == [1.0, 2.0, 3.0, 2.0, 1.0]
    assert run(Past(), [2.0, 1.0])[0].tolist() == [2.0, 1.0]


def test_only_as_much_as_is_asked_for_is_looked_back_on() -> None:
    past = recorded(*[1.0, 2.0] * 50)
    _, history = run(past, [1.0, 2.0] * 20)
    assert past.load(history, 60).tolist() == [1.0, 2.0] * 30
    assert past.load(history, 30).tolist() == [1.0, 2.0] * 15


def test_every_source_had_that_past() -> None:
    whole, _ = run(recorded(1.0, 2.0), [2.0], topology=TWO)
    assert whole.tolist() == [2.0, 4.0, 4.0]


def test_an_earlier_run_takes_the_place_of_what_was_recorded() -> None:
    _, history = run(Past(), [7.0, float("nan"), 8.0])
    restarted = History(ONE)
    restarted.restore(history.state(100), now=history.now, window_s=WINDOW_S)
    whole, _ = run(recorded(5.0, 6.0, 5.0, 6.0, 5.0), [6.0, 5.0], restarted)
    assert whole.tolist() == [5.0, 6.0, 7.0, 6.0, 8.0, 6.0, 5.0]


@pytest.mark.parametrize("scale", [1.0, 3.0, 0.3])
def test_a_past_at_another_scale_is_set_aside_and_the_reason_says_so(scale: float) -> None:
    random = np.random.default_rng(2)
    planner, history, said = Foretide(), History(ONE), []
    planner.remember(scale * random.gamma(60.0, 100.0 / 60.0, 400))
    for i in range(2 * FIRST.stop):
        rate = random.gamma(60.0, 100.0 / 60.0)
        history.append(Snapshot(WINDOW_S * (i + 1), WINDOW_S, {"a": sample(rate)}, lead_s=10.0))
        said.append(planner.plan(ONE, history, steady(rate)).reasons.get("", ""))
    doubts = [s for s in said if s.startswith("the recorded past is set aside")]
    assert len(doubts) == (scale != 1.0)
    assert (planner.experience.news(history.now) is None) or scale == 1.0


def test_a_run_may_begin_at_any_hour_of_a_past_that_repeats() -> None:
    day = 100.0 * (1.0 + 0.9 * np.sin(np.arange(480) * 2 * np.pi / 120))
    for ends in range(361, 480, 7):
        past = recorded(*day[:ends], *[np.nan] * 11)
        whole, _ = run(past, list(np.tile(day[:120], 5)[ends + 11 :][:20]))
        assert len(whole) == ends + 11 + 20


@pytest.mark.parametrize("past", [[], [np.nan] * 5, [0.0] * 30, [4.0]])
def test_a_past_that_tells_nothing_does_no_harm(past: list[float]) -> None:
    whole, _ = run(recorded(*past), [0.0] * 20)
    assert whole[-20:].tolist() == [0.0] * 20


def test_the_default_system_plans_by_rules_from_its_first_window_with_a_past() -> None:
    random, history = np.random.default_rng(2), History(ONE)
    past = random.gamma(60.0, 100.0 / 60.0, 400)
    planner = system("foretide").remembering(past).new_planner()
    history.append(Snapshot(WINDOW_S, WINDOW_S, {"a": sample(100.0)}, lead_s=10.0))
    assert (
        "99 % within 5 s would have cost" in planner.plan(ONE, history, steady(100.0)).reasons[""]
    )
