from pathlib import Path

import pytest

from foretide.config import Settings, load_settings, parse_settings
from foretide.errors import InvalidConfig


def test_every_setting_has_a_default_that_works() -> None:
    settings = parse_settings({})
    assert settings == Settings()
    assert settings.mode == "advise"
    assert settings.system.build().name == "foretide"


def test_a_file_changes_parts_and_constants_of_a_system(tmp_path: Path) -> None:
    path = tmp_path / "foretide.toml"
    path.write_text(
        'mode = "act"\nwindow_s = 5\n[system]\nname = "srea"\nhorizon = 4\n'
        "[system.planner_constants]\ndrain_s = 20.0\n"
        "[system.guards.cool-down]\nseconds = 120\n[prices]\nup = 1.0\n"
    )
    settings = load_settings(path)
    built = settings.system.build()
    assert settings.mode == "act"
    assert settings.window_s == 5.0
    assert settings.prices.up == 1.0
    assert built.cadence.horizon == 4
    assert built.guards["cool-down"] == {"seconds": 120}
    assert built.planner_constants == {"drain_s": 20.0}


def test_constants_of_an_exchanged_part_do_not_follow() -> None:
    changed = parse_settings(
        {"system": {"name": "srea", "planner": "static", "planner_constants": {"replicas": 7}}}
    )
    assert changed.system.build().planner_constants == {"replicas": 7}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"mod": "act"}, "unknown key 'mod'; the nearest valid key is 'mode'"),
        ({"prices": {"upp": 1}}, "unknown key 'prices.upp'; the nearest valid key is 'up'"),
        (
            {"system": {"planer": "static"}},
            "unknown key 'system.planer'; the nearest valid key is 'planner'",
        ),
        ({"mode": "go"}, "key 'mode'"),
        ({"window_s": "ten"}, "key 'window_s': Expected `float`, got `str`"),
        ({"window_s": 0}, "window_s must be more than 0 seconds"),
        ({"target_latency_s": -1}, "target_latency_s must be more than 0 seconds"),
        ({"system": {"plan_every": 0}}, "plan_every is 0: give 1 window or more"),
        (
            {"system": {"name": "srea", "planner_constants": {"drain_s": "soon"}}},
            "drain_s must be a number, it is 'soon'",
        ),
        ({"system": {"name": "srea", "planner_constants": {"drain_s": 0.0}}}, "drain_s is 0"),
        (
            {"system": {"guards": {"patience": {"windows": 2.5}}}},
            "windows must be a whole number, it is 2.5",
        ),
        ({"system": {"guards": {"patience": {"windows": 0}}}}, "patience of 0 windows"),
        ({"system": {"guards": {"cool-down": {"seconds": -1}}}}, "cool-down of -1 s"),
        ({"system": {"guards": {"catch-up": {"backlog_s": -1}}}}, "catch-up with -1 s"),
        ({"system": {"guards": {"budget": {"total": 0}}}}, "a budget of 0 replicas"),
        ({"prices": {"up": -1}}, "Prices.up is -1"),
        ({"system": {"name": "sera"}}, "did you mean 'srea'"),
        ({"system": {"planner": "statik"}}, "did you mean 'static'"),
        (
            {"system": {"name": "srea", "planner_constants": {"drain": 3}}},
            "has no constant 'drain'; it takes: drain_s",
        ),
        ({"system": {"guards": {"cooldown": {}}}}, "did you mean 'cool-down'"),
    ],
)
def test_mistakes_name_the_key_and_the_file(table: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_settings(table, "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert sentence in str(caught.value)


def test_unreadable_files_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="cannot read the settings file"):
        load_settings(tmp_path / "none.toml")
    for bad in (b"a = = 1", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(bad)
        with pytest.raises(InvalidConfig, match="is not valid TOML"):
            load_settings(tmp_path / "bad.toml")
