"""What was learned outlives the run."""

from __future__ import annotations

import numpy as np
import pytest

from foretide.apps import app
from foretide.errors import JournalError
from foretide.learned import Learned, learned_path
from foretide.load import Load
from foretide.plan.hosts.sarsa import Sarsa
from foretide.plan.static import Static
from foretide.sim.environment import Simulation
from foretide.sim.hosts import HostCosts
from foretide.systems import system


def test_a_restarted_run_goes_on_with_its_tables(tmp_path):
    ticks = app("ticks")
    environment = Simulation(ticks, Load("steady", np.full(600, 120.0)), hosts=HostCosts(first=3))
    path = learned_path(tmp_path / "journal.jsonl", "sarsa")
    first = system("fugu-rl").autoscaler(ticks.topology, environment, environment)
    with Learned(path, first.planner, every=10) as kept:
        for i in range(1, 31):
            kept.note(first.step(i * 10.0))
            assert path.exists() == (i >= 10)
    again = Sarsa()
    with Learned(path, again):
        assert again.state() == first.planner.state()  # type: ignore[attr-defined]
        assert any(table.visits.any() for table in again.tables.values())
    assert [p.name for p in tmp_path.iterdir()] == ["learned-sarsa.json"]


def test_a_planner_that_does_not_learn_writes_nothing(tmp_path):
    with Learned(tmp_path / "learned.json", Static()) as kept:
        kept.save()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"{}", b'{"pending": 3}', b'{"tables": 3}', b'{"tables": {"a": []}}']
)
def test_an_unreadable_file_is_one_sentence_and_stays(tmp_path, content):
    path = tmp_path / "learned-sarsa.json"
    path.write_bytes(content)
    with pytest.raises(JournalError, match="remove the file to learn anew"), Learned(path, Sarsa()):
        pass
    assert path.read_bytes() == content
