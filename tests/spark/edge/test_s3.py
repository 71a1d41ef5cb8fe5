"""Manifests, checkpoints, state and replicas in an S3 bucket of moto's server, which stands in for
S3 itself: a pipeline ends in the middle, and goes on from the bucket on another machine's disk.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import check_two_lives

from foretide.demo.broker import Broker, free_port

pytestmark = [pytest.mark.spark, pytest.mark.long]
MOTO = "moto[server,s3]==5.2.5"
SDK = "2.35.4"
PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    *(f"software.amazon.awssdk:{part}:{SDK}" for part in ("s3", "s3-transfer-manager", "sts")),
)
LIMIT_S = 120.0


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the bucket ``kept``."""
    uv, port = Path(sys.executable).with_name("uv"), free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(uv), "tool", "run", "--from", MOTO, "moto_server", "-H", "127.0.0.1", "-p"]
    with open(tmp_path / "moto.log", "ab") as log:
        server = subprocess.Popen([*command, str(port)], stdout=log, stderr=log)
    try:
        until, pause_s = time.monotonic() + LIMIT_S, 0.5
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/kept", method="PUT"))
                break
            except OSError:
                said = (tmp_path / "moto.log").read_text()[-500:]
                if server.poll() is not None:
                    pytest.skip(f"moto cannot be had here: {said}")
                assert time.monotonic() < until, said
                time.sleep(pause_s)
        yield url
    finally:
        server.terminate()
        server.wait(30)


def test_a_pipeline_goes_on_from_the_bucket_alone(
    own_broker: Broker, endpoint: str, tmp_path: Path
) -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
    }
    settings = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.excludes": "software.amazon.awssdk:bundle",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.change.detection.mode": "none",
    }
    check_two_lives(tmp_path, own_broker.servers, "s3a://kept/clicks", settings, environment)
