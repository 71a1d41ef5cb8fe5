from foretide.plan.promise.pending import Pending


def test_what_is_on_its_way_counts_until_it_is_there() -> None:
    pending = Pending()
    pending.ask("a", running=1, target=4, ready_at=30.0)
    pending.ask("a", running=1, target=6, ready_at=40.0)
    assert pending.total("a", now=10.0) == 5
    assert pending.done_by("a", now=10.0, until=50.0) == 3 * 20 + 2 * 10
    assert pending.total("a", now=30.0) == 2
    assert pending.total("b", now=0.0) == 0


def test_a_smaller_target_takes_back_the_youngest_first() -> None:
    pending = Pending()
    pending.ask("a", running=1, target=4, ready_at=30.0)
    pending.ask("a", running=1, target=6, ready_at=40.0)
    pending.ask("a", running=1, target=5, ready_at=50.0)
    assert pending.coming("a", now=0.0) == [(30.0, 3), (40.0, 1)]
    pending.ask("a", running=1, target=1, ready_at=50.0)
    assert pending.total("a", now=0.0) == 0
