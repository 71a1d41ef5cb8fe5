"""The quick start cannot rot: a newcomer's ten minutes, block after block, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "quick-start.md").read_text()


def commands() -> list[tuple[str, str]]:
    """Every command of the page's console blocks, with what it prints."""
    pairs: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            more = [line for line in lines[1:] if line.startswith("> ")]
            command = "\n".join([lines[0], *(line[2:] for line in more)])
            pairs.append((command, "\n".join(lines[1 + len(more) :])))
    return pairs


def matches(expected: str, printed: str) -> bool:
    """Whether a text is as expected; ``...`` stands for anything, blanks for any blanks."""
    words = [re.escape(part) for part in " ".join(expected.split()).split("...")]
    return re.fullmatch(".*?".join(words), " ".join(printed.split()), re.DOTALL) is not None


def test_the_page_walks_the_whole_path() -> None:
    walked = [command.split()[1] for command, _ in commands() if command.startswith("foretide ")]
    assert walked == [
        "demo", "examples", "examples", "run", "run", "report", "calibrate", "compare",
    ]  # fmt: skip


def test_the_function_shown_is_the_example_s() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert code in (ROOT / "src" / "foretide" / "examples" / "files.py").read_text()


def test_what_differs_is_left_out() -> None:
    assert matches("a ... c\n...\ne", "a  b c\n d\n e")
    assert not matches("a ... c", "a b d")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_block_does_what_the_page_says(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYSPARK_PYTHON"] = sys.executable
    fed: list[subprocess.Popen[bytes]] = []
    try:
        for command, expected in commands():
            if command.endswith(" &"):
                fed.append(subprocess.Popen(command[:-2].split(), cwd=tmp_path, env=environment))
                continue
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            assert matches(expected, done.stdout), f"{command}\n{done.stdout}"
    finally:
        for process in fed:
            process.kill()
            process.wait()
    assert (tmp_path / "frontier.html").stat().st_size > 10_000
