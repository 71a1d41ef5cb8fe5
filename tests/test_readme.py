"""The README cannot rot: its commands and its code are run."""

import contextlib
import io
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foretide.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [line.split("#")[0].strip() for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if line.strip()]
STARTS_SPARK = ("demo", "run", "attach")


def foretide_commands(spark: bool) -> list[str]:
    found = [c.split("foretide ", 1)[1] for c in COMMANDS if c.startswith(".venv/bin/foretide ")]
    return [c for c in found if (c.split()[0] in STARTS_SPARK) == spark]


@pytest.mark.parametrize("command", foretide_commands(spark=False))
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.output
    assert result.output.strip()


def test_make_commands_exist() -> None:
    made = [c for c in COMMANDS if c.startswith("make ")]
    assert {"make demo", "make test"} <= set(made)
    for command in made:
        subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, check=True, capture_output=True)


def test_code_prints_what_the_readme_says() -> None:
    code = next(block for kind, block in BLOCKS if kind == "python")
    said = next(block for kind, block in BLOCKS if kind == "text")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == said


def test_links_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
