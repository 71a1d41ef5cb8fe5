import subprocess
import sys

import pytest
from typer.testing import CliRunner

from foretide.apps import APPS
from foretide.cli import app
from foretide.forecast import FORECASTERS
from foretide.systems import SYSTEMS


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_everything_built_in_is_listed() -> None:
    systems, models = run("systems"), run("models")
    assert all(name in systems for name in SYSTEMS)
    assert all(name in models for name in FORECASTERS.names)


def command_names() -> list[str]:
    return [c.name for c in app.registered_commands if c.name]


@pytest.mark.parametrize("command", command_names())
def test_the_help_of_each_command_shows_an_example(command: str) -> None:
    assert f"foretide {command}" in " ".join(run(command, "--help").split())


def test_what_is_built_in_is_one_line_each_when_it_is_no_terminal() -> None:
    for command, names in (
        ("systems", list(SYSTEMS)),
        ("models", list(FORECASTERS.names)),
        ("apps", list(APPS)),
    ):
        lines = run(command).splitlines()[2:]
        assert [line.split()[0] for line in lines] == names
    assert "foretide[deep]" in run("models")
    assert "twitter-smoothed" in run("apps")


def test_a_mistake_is_one_sentence_and_exit_code_2() -> None:
    script = (
        "from foretide.cli import app; from foretide.errors import InvalidConfig; import warnings\n"
        "@app.command('fail')\n"
        "def fail() -> None:\n"
        "    warnings.warn('one line was skipped')\n"
        "    raise InvalidConfig(\"a[/b needs pip install 'foretide[deep]'\")\n"
        "app(['fail'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "warning: one line was skipped",
        "error: a[/b needs pip install 'foretide[deep]'",
    ]
    assert result.stdout == ""
