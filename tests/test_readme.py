"""The README cannot rot: its commands and its code are run."""

import contextlib
import inspect
import io
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from foretide import attach
from foretide.cli import app
from foretide.spark.control.live import find_pipeline

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for kind, block in BLOCKS
    if kind == "sh"
    for line in block.splitlines()
    if line.strip()
]
SHOWN_ELSEWHERE = {
    "demo": "tests/demo/test_demo.py",
    "run": "tests/spark/control/test_live.py",
    "dashboard": "tests/cli/test_dashboard.py",
}


def foretide_commands() -> list[str]:
    return [c.split("foretide ", 1)[1] for c in COMMANDS if c.startswith(".venv/bin/foretide ")]


RUNNABLE = [
    pytest.param(command, marks=pytest.mark.slow if command.startswith("compare") else ())
    for command in foretide_commands()
    if command.split()[0] not in SHOWN_ELSEWHERE
]


@pytest.mark.parametrize("command", RUNNABLE)
def test_commands_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a load of the reader's own: ten minutes at one row per second."""
    rows = "".join(f"{second},{1000 + 500 * (second // 60 % 2)}\n" for second in range(600))
    (tmp_path / "my-load.csv").write_text("timestamp,rate\n" + rows)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.output
    assert result.output.strip()


@pytest.mark.parametrize(
    "command", [c for c in foretide_commands() if c.split()[0] in SHOWN_ELSEWHERE]
)
def test_commands_shown_by_other_tests_take_these_options(command: str) -> None:
    name, *arguments = command.split()
    assert (ROOT / SHOWN_ELSEWHERE[name]).exists()
    told = CliRunner(env={"COLUMNS": "200"}).invoke(app, [name, "--help"]).output
    assert [a for a in arguments if a.startswith("--") and a not in told] == []


def test_make_commands_exist() -> None:
    made = [c for c in COMMANDS if c.startswith("make ")]
    assert {"make demo", "make test"} <= set(made)
    for command in made:
        subprocess.run(
            ["make", "-n", *command.split()[1:]], cwd=ROOT, check=True, capture_output=True
        )


def test_code_prints_what_the_readme_says() -> None:
    pairs = [
        (code, said)
        for (kind, code), (after, said) in pairwise(BLOCKS)
        if (kind, after) == ("python", "text")
    ]
    assert pairs
    for code, said in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
        assert printed.getvalue() == said


def test_the_pipeline_of_ones_own_is_one(tmp_path: Path) -> None:
    code = next(block for kind, block in BLOCKS if kind == "python" and "Pipeline(" in block)
    (tmp_path / "mine.py").write_text(code)
    assert find_pipeline(f"{tmp_path / 'mine.py'}:pipeline").topology().names == ("square",)


def test_attach_takes_what_the_readme_gives() -> None:
    code = next(block for kind, block in BLOCKS if kind == "python" and "attach(" in block)
    given: dict[str, object] = {}

    def taken(spark: object, **settings: object) -> None:
        given.update(settings)

    exec(
        compile(code.replace("import foretide\n", ""), "README.md", "exec"),
        {"spark": None, "foretide": SimpleNamespace(attach=taken)},
    )
    assert given
    assert set(given) <= set(inspect.signature(attach).parameters)


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_page_about_pipelines_shows_the_example_as_it_ships() -> None:
    page = (ROOT / "docs" / "your-own-pipeline.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    assert shown in (ROOT / "src" / "foretide" / "examples" / "words.py").read_text()
