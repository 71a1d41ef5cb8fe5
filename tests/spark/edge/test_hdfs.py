"""Manifests, checkpoints, state and replicas on HDFS, a real name node and data node on loopback: a
pipeline ends in the middle, and goes on from there on another machine's disk.

Hadoop's servers are in one jar of Maven Central; all else they need is among Spark's own jars.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from stores import check_two_lives

from foretide.demo.broker import Broker, free_port

pytestmark = [pytest.mark.spark, pytest.mark.long]
JAR = "org.apache.hadoop:hadoop-client-minicluster:3.5.0"
SHA256 = "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c"
SERVERS = "org.apache.hadoop.hdfs.server"
LIMIT_S = 120.0
SITE = {
    "dfs.replication": "1",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.permissions.enabled": "false",
    "dfs.namenode.safemode.extension": "0",
}


def minicluster() -> Path:
    """The jar with Hadoop's servers, from the cache folder or from Maven Central."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foretide" / "hadoop"
    jar = cache / "hadoop-client-minicluster-3.5.0.jar"
    if not jar.exists():
        fetch = ["mvn", "-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"]
        try:
            subprocess.run(
                [*fetch, f"-Dartifact={JAR}", f"-DoutputDirectory={cache}"],
                capture_output=True, timeout=500, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"Hadoop's servers cannot be had here: {error}")
    assert hashlib.sha256(jar.read_bytes()).hexdigest() == SHA256
    return jar


def site(settings: dict[str, str]) -> str:
    members = [
        f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items()
    ]
    return f"<configuration>{''.join(members)}</configuration>"


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[str]:
    """The address of a file system with one data node."""
    url, conf = f"hdfs://127.0.0.1:{free_port()}", tmp_path / "conf"
    conf.mkdir()
    core = {"fs.defaultFS": url, "hadoop.tmp.dir": str(tmp_path / "hdfs")}
    (conf / "core-site.xml").write_text(site(core))
    (conf / "hdfs-site.xml").write_text(site(SITE))
    ours = Path(pyspark.__file__).parent / "jars" / "*"
    java = [str(shutil.which("java")), "-Xmx256m", "-XX:+UseSerialGC", "-cp"]
    java += [os.pathsep.join(map(str, (conf, minicluster(), ours)))]
    servers: list[subprocess.Popen[bytes]] = []
    with open(tmp_path / "hdfs.log", "ab") as log:
        formatting = [*java, f"{SERVERS}.namenode.NameNode", "-format", "-nonInteractive"]
        subprocess.run(formatting, stdout=log, stderr=log, timeout=LIMIT_S, check=True)
        try:
            for name in ("namenode.NameNode", "datanode.DataNode"):
                command = [*java, f"{SERVERS}.{name}"]
                servers.append(subprocess.Popen(command, stdout=log, stderr=log))
            until = time.monotonic() + LIMIT_S
            shell = [*java, "org.apache.hadoop.fs.FsShell", "-touchz", "/ready"]
            while subprocess.run(shell, stdout=log, stderr=log, check=False).returncode:
                said = (tmp_path / "hdfs.log").read_text()[-1000:]
                assert time.monotonic() < until, said
                assert all(s.poll() is None for s in servers), said
            yield url
        finally:
            for server in servers:
                server.terminate()
                server.wait(30)


def test_a_pipeline_goes_on_from_hdfs_alone(own_broker: Broker, hdfs: str, tmp_path: Path) -> None:
    check_two_lives(tmp_path, own_broker.servers, f"{hdfs}/clicks", {}, {})
