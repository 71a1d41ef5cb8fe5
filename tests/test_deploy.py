"""The Kubernetes manifest is valid by the API's own schemas, and what it and the recipe of the
image refer to is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parent.parent
PYTHON = "3.11"
FILE = ROOT / "deploy" / "kubernetes.yaml"
RESOURCES: list[dict[str, Any]] = list(yaml.safe_load_all(FILE.read_text()))


@pytest.mark.parametrize(
    "resource", RESOURCES, ids=lambda r: f"{r['kind']}-{r['metadata']['name']}"
)
def test_every_resource_is_valid(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, "1.30", strict=True)
    broken = {**resource, "metadata": {"name": 5}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.30", strict=True)


def test_the_driver_uses_the_names_that_the_file_declares() -> None:
    by_kind = {r["kind"]: r for r in RESOURCES}
    driver = by_kind["StatefulSet"]["spec"]
    pod = driver["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["serviceAccountName"] == by_kind["ServiceAccount"]["metadata"]["name"]
    assert driver["serviceName"] == by_kind["Service"]["metadata"]["name"]
    assert container["envFrom"][0]["secretRef"]["name"] == by_kind["Secret"]["metadata"]["name"]
    ports = {p["port"] for p in by_kind["Service"]["spec"]["ports"]}
    assert ports == {p["containerPort"] for p in container["ports"]}
    assert f"--conf=spark.kubernetes.container.image={container['image']}" in container["command"]
    assert f"--conf=spark.driver.host={driver['serviceName']}" in container["command"]


def test_the_image_copies_what_the_repository_has_and_installs_one_version_of_spark() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    known = {"ARG", "FROM", "USER", "ENV", "COPY", "RUN", "WORKDIR"}
    assert {step[0] for step in steps} <= known
    copied = [name for step in steps if step[0] == "COPY" for name in step[1:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert "FROM apache/spark:${SPARK}-scala2.13-java17-python3-ubuntu" in text
    assert '"pyspark==${SPARK}"' in text
    assert f'requires-python = ">={PYTHON}"' in (ROOT / "pyproject.toml").read_text()
    assert f"uv venv --python {PYTHON} " in text
