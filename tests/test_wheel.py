"""The wheel, as users get it: built, installed into fresh environments outside the repository."""

import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
Install = Callable[[str], Path]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command outside the repository, with nothing of this environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Installs the wheel with extras into an environment of its own; versions are the locked ones,
    verified by hash.
    """
    uv = Path(sys.executable).with_name("uv")
    dist = tmp_path_factory.mktemp("dist")
    built = run(
        uv, "build", "-q", "--wheel", "--no-build-isolation", "--python", sys.executable,
        "-o", dist, ROOT, cwd=dist,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = dist.glob("foretide-*.whl")

    def into(extras: str) -> Path:
        folder = tmp_path_factory.mktemp("fresh")
        venv.create(folder / "venv")
        python = folder / "venv" / "bin" / "python"
        asked = f"foretide{extras} @ {wheel.as_uri()}"
        installed = run(
            uv, "pip", "install", "-q", "--verify-hashes", "--python", python,
            "-c", ROOT / "requirements.lock", asked, cwd=folder,
        )  # fmt: skip
        assert installed.returncode == 0, installed.stderr
        return folder

    return into


def test_the_core_needs_no_spark(install: Install) -> None:
    folder = install("")
    foretide = folder / "venv" / "bin" / "foretide"
    listed = run(foretide, "systems", cwd=folder)
    assert "static-peak" in listed.stdout, listed.stderr
    simulated = run(
        foretide, "simulate", "--app", "chain", "--load", "stable:mean=50,days=1",
        "--system", "srea", "--json", cwd=folder,
    )  # fmt: skip
    assert '"system": "srea"' in simulated.stdout, simulated.stderr
    assert "scale in slowly" in run(foretide, "examples", "careful.toml", cwd=folder).stdout
    for command, extra in (("demo", "spark"), ("run foretide.examples.words:pipeline", "spark")):
        refused = run(foretide, *command.split(), cwd=folder)
        assert refused.returncode == 2
        (sentence,) = refused.stderr.splitlines()
        assert sentence.endswith(f"which is not installed: pip install 'foretide[{extra}]'")
    web = run(foretide, "dashboard", ".", cwd=folder)
    assert web.stderr.splitlines()[-1].endswith("pip install 'foretide[web]'")
    asked = run(folder / "venv/bin/python", "-c", "from foretide import attach", cwd=folder)
    assert "pip install 'foretide[spark]'" in asked.stderr.splitlines()[-1]


@pytest.mark.spark
def test_the_demo_runs_in_an_empty_folder(install: Install) -> None:
    folder = install("[spark]")
    empty = folder / "empty"
    empty.mkdir()
    done = run(folder / "venv/bin/foretide", "demo", "--minutes", "1", "--port", "0", cwd=empty)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "events in" in done.stdout
    assert (empty / "runs" / "demo" / "report.html").stat().st_size > 10_000
