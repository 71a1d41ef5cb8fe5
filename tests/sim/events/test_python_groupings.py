"""A registered grouping without a compiled rule, in every engine of the twin."""

from collections.abc import Iterator

import numpy as np
import pytest
from lopsided import registered

from foretide.apps import App, Service, Values
from foretide.balance import GROUPINGS
from foretide.balance.grouping import Feedback, Grouping, Ids, Traits
from foretide.balance.keys import Keys, mixed
from foretide.balance.osg import OnlineShuffle
from foretide.errors import InvalidConfig, InvalidRecord
from foretide.load import Load
from foretide.registry import Part
from foretide.sim.environment import Simulation
from foretide.sim.events.python_groupings import PythonGroupings
from foretide.sim.events.queues import QueueModel
from foretide.topology import Operator, Topology

APP = App(
    "two-costs",
    "one operator whose events cost 1 or 9 ms by their value",
    "a test",
    Topology((Operator("work", max_replicas=4),)),
    {"work": Service(0.005, "by-value", by_value_s=(0.001, 0.009))},
    values=Values(2),
    arrivals="poisson",
    window_s=10.0,
)
LOAD = Load("steady", np.full(60, 100.0))


@pytest.fixture
def lopsided() -> Iterator[str]:
    with registered() as name:
        yield name


@pytest.fixture
def added() -> Iterator[None]:
    before = set(GROUPINGS.names)
    yield
    for name in set(GROUPINGS.names) - before:
        GROUPINGS.remove(name)


@pytest.mark.parametrize("mode", ["events", "batch"])
def test_its_own_rule_assigns_every_event(lopsided: str, mode: str) -> None:
    environment = Simulation(APP, LOAD, mode=mode, grouping=lopsided, replicas={"work": 3}, seed=2)
    seen = [environment.read(at * 10.0).samples["work"] for at in range(1, 7)]
    shares = np.sum([s.replica_processed for s in seen], axis=0)
    assert shares.sum() > 5000
    assert shares / shares.sum() == pytest.approx([0.75, 0.0, 0.25], abs=0.002)


@pytest.mark.parametrize("mode", ["events", "batch"])
def test_it_learns_from_every_window(lopsided: str, mode: str) -> None:
    environment = Simulation(APP, LOAD, mode=mode, grouping=lopsided, replicas={"work": 2}, seed=2)
    seen = [environment.read(at * 10.0).samples["work"] for at in range(1, 4)]
    assert isinstance(environment._model, QueueModel)
    grouping = environment._model._python._groupings[0]
    assert grouping.processed == [list(s.replica_processed or ()) for s in seen]  # type: ignore[attr-defined]


def test_the_fluid_engine_takes_it_for_shuffle_or_for_key_hash_by_its_trait(added: None) -> None:
    class Keyed(OnlyFirst):
        traits = Traits(keeps_keys=True)

    globals()["Keyed"] = Keyed
    GROUPINGS.add(Part("first", f"{__name__}:OnlyFirst", "replica 0"))
    GROUPINGS.add(Part("keyed", f"{__name__}:Keyed", "replica 0"))
    sojourns = {}
    for name in ("first", "shuffle", "keyed", "key-hash"):
        environment = Simulation(APP, LOAD, mode="fluid", grouping=name, replicas={"work": 3})
        sojourns[name] = [environment.read(at * 10.0).samples["work"].sojourn_s for at in (1, 2)]
    assert sojourns["first"] == sojourns["shuffle"] != sojourns["keyed"] == sojourns["key-hash"]


class OnlyFirst(Grouping):
    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        return np.zeros(len(keys), dtype=np.int32)


class Outside(Grouping):
    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        return np.full(len(keys), replicas, dtype=np.int32)


class Failing(Grouping):
    def assign(self, keys: Keys, replicas: int, start: int = 0) -> Ids:
        raise RuntimeError("no replica today")


class Learning(OnlineShuffle):
    """Learns costs by key, and keeps each window's feedback."""

    def __init__(self) -> None:
        super().__init__()
        self.feedback: list[Feedback] = []

    def learn(self, feedback: Feedback) -> None:
        super().learn(feedback)
        self.feedback.append(feedback)


@pytest.mark.parametrize("mode", ["events", "batch"])
def test_a_cost_learner_is_given_every_services_cost(added: None, mode: str) -> None:
    GROUPINGS.add(Part("learning", f"{__name__}:Learning", "learns costs"))
    environment = Simulation(
        APP, LOAD, mode=mode, grouping="learning", replicas={"work": 2}, seed=2
    )
    samples = [environment.read(at * 10.0).samples["work"] for at in (1, 2, 3)]
    assert isinstance(environment._model, QueueModel)
    grouping = environment._model._python._groupings[0]
    assert isinstance(grouping, Learning)
    values = np.array([0, 1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        assert grouping.estimate(mixed(values)) == pytest.approx([0.001, 0.009])
    for feedback, sample in zip(grouping.feedback, samples, strict=True):
        assert feedback.costs is not None
        assert feedback.costs.events == pytest.approx(sample.processed, abs=60)
    last = grouping.feedback[-1]
    assert last.expected_s is not None
    assert last.expected_s == pytest.approx(last.busy_s, rel=0.1)


def test_mistakes_of_a_grouping_reach_the_caller(added: None) -> None:
    GROUPINGS.add(Part("failing", f"{__name__}:Failing", "raises"))
    GROUPINGS.add(Part("outside", f"{__name__}:Outside", "one past the last replica"))
    with pytest.raises(RuntimeError, match="no replica today"):
        Simulation(APP, LOAD, grouping="failing").read(10.0)
    with pytest.raises(InvalidRecord, match=r"Outside.assign must return one replica in \[0, 1\)"):
        Simulation(APP, LOAD, grouping="outside").read(10.0)
    with pytest.raises(InvalidConfig, match="unknown grouping 'lopsidet'"):
        Simulation(APP, LOAD, grouping="lopsidet")


def test_built_in_groupings_get_no_callbacks() -> None:
    model = Simulation(APP, LOAD, grouping="osg")._model
    assert isinstance(model, QueueModel)
    assert model.state.python is None
    assert isinstance(model._python, PythonGroupings)
