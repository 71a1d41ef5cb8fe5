import pytest

from foretide.errors import InvalidTopology
from foretide.topology import Operator, Topology


def test_diamond_with_a_loop_is_understood() -> None:
    t = Topology(
        (
            Operator("a"),
            Operator("b", inputs=("a",)),
            Operator("c", inputs=("a", "d")),
            Operator("d", inputs=("b", "c")),
            Operator("e", inputs=("d",)),
        )
    )
    assert t.sources == ("a",)
    assert t.sinks == ("e",)
    assert t.has_loop
    assert t.successors("a") == ("b", "c")
    assert t.predecessors("d") == ("b", "c")
    assert set(t.order) == set(t.names)
    assert t.order[0] == "a"
    assert t.order.index("b") < t.order.index("d") < t.order.index("e")


def test_self_loop_fed_from_outside() -> None:
    t = Topology((Operator("detect", inputs=("detect",), source=True),))
    assert t.sources == ("detect",)
    assert t.sinks == ("detect",)
    assert t.has_loop


def test_a_chain_has_no_loop() -> None:
    t = Topology((Operator("b", inputs=("a",)), Operator("a")))
    assert not t.has_loop
    assert t.order == ("a", "b")


@pytest.mark.parametrize(
    ("operators", "sentence"),
    [
        ((), "at least one operator"),
        ((Operator("a"), Operator("a")), "two operators are named 'a'"),
        ((Operator("a", inputs=("x",)),), "reads from 'x', which does not exist"),
        (
            (Operator("a", inputs=("b",)), Operator("b", inputs=("a",))),
            "no operator of this topology is a source",
        ),
        (
            (Operator("a"), Operator("b", inputs=("c",)), Operator("c", inputs=("b",))),
            "no events can reach b, c",
        ),
    ],
)
def test_mistakes_are_sentences(operators: tuple[Operator, ...], sentence: str) -> None:
    with pytest.raises(InvalidTopology, match=sentence):
        Topology(operators)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": ""}, "must be letters"),
        ({"name": "a b"}, "must be letters"),
        ({"name": "a", "min_replicas": 0}, "need 1 <= min_replicas"),
        ({"name": "a", "min_replicas": 5, "max_replicas": 4}, "need 1 <= min_replicas"),
        ({"name": "a", "inputs": ("b", "b")}, "lists an input twice"),
    ],
)
def test_impossible_operators(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidTopology, match=sentence):
        Operator(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["..", ".", "...", ".hidden", "../up"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(InvalidTopology, match="not starting with a digit or a dot"):
        Operator(name)
