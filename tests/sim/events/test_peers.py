"""The same network in simpy and ciw."""

import pytest
from _peers import NAMES, in_ciw, in_foretide, in_simpy


@pytest.mark.slow
@pytest.mark.parametrize("peer", [in_simpy, in_ciw])
def test_means_agree_with_another_simulator(peer):
    ours, theirs = in_foretide(400_000.0), peer(16_000.0, seed=2)
    for name in NAMES:
        assert ours.sojourn_s[name] == pytest.approx(theirs.sojourn_s[name], rel=0.03)
