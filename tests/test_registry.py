import pytest

from foretide.errors import InvalidConfig, MissingExtra
from foretide.registry import Part, Registry

PARTS: Registry[object] = Registry(
    "thing",
    (
        Part("list", "builtins:list", "a list"),
        Part("fraction", "fractions:Fraction", "a number", constants={"numerator": 3}),
        Part("heavy", "a_library_nobody_has:Thing", "needs an extra", extra="deep"),
        Part("broken", "a_library_nobody_has:Thing", "forgot its extra"),
    ),
)


def test_a_part_is_built_with_its_constants_and_the_callers() -> None:
    assert str(PARTS.build("fraction", denominator=4)) == "3/4"
    assert "list" in PARTS
    assert PARTS.names == ("list", "fraction", "heavy", "broken")


def test_mistakes_are_sentences() -> None:
    with pytest.raises(InvalidConfig, match="unknown thing 'lists'; did you mean 'list'"):
        PARTS.build("lists")
    with pytest.raises(InvalidConfig, match="has no constant 'denominater'"):
        PARTS.build("fraction", denominater=4)
    with pytest.raises(MissingExtra, match=r"pip install 'foretide\[deep\]'"):
        PARTS.build("heavy")
    with pytest.raises(ModuleNotFoundError):
        PARTS.build("broken")
    with pytest.raises(ValueError, match="registered twice"):
        Registry("thing", (Part("a", "x:y", ""), Part("a", "x:y", "")))
