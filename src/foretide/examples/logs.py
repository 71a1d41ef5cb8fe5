"""System logs: parse with grok-like patterns, match rules, count by rule and window, store.

``count`` keeps its windows in Spark's state store. Patterns are written as %{IP:client} and
compiled to regular expressions.
Run it: foretide run foretide.examples.logs:pipeline --mode act --target 10
"""

import random
import re
import time

from foretide.examples.database import SqliteTable
from foretide.load import load
from foretide.spark import Generator, Pipeline

WINDOW_S = 10
LOOKUP_S = 0.01
PATTERNS = {
    "IP": r"\d{1,3}(?:\.\d{1,3}){3}",
    "INT": r"\d+",
    "WORD": r"\w+",
    "PATH": r"/\S*",
    "REST": r".*",
}
SHAPES = {
    "sshd": "sshd[%{INT:pid}]: Failed password for %{WORD:user} from %{IP:client} port %{INT:port}",
    "nginx": 'nginx: %{IP:client} "%{WORD:method} %{PATH:path}" %{INT:status} %{INT:bytes}',
    "kernel": "kernel: Out of memory: Killed process %{INT:pid} (%{WORD:user})",
    "cron": "CRON[%{INT:pid}]: (%{WORD:user}) CMD (%{REST:command})",
}
RULES = (
    ("failed login", lambda e: e["program"] == "sshd"),
    ("login as root", lambda e: e["program"] == "sshd" and e["user"] == "root"),
    ("server error", lambda e: e["program"] == "nginx" and e["status"] >= 500),
    ("out of memory", lambda e: e["program"] == "kernel"),
)


def compiled(pattern):
    """A pattern as a regular expression.

    >>> compiled("from %{IP:client} port %{INT:port}").search("from 192.0.2.7 port 22").groupdict()
    {'client': '192.0.2.7', 'port': '22'}
    """
    parts = re.split(r"%\{(\w+):(\w+)\}", pattern)
    text = re.escape(parts[0])
    for kind, name, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        text += f"(?P<{name}>{PATTERNS[kind]}){re.escape(after)}"
    return re.compile(text)


EXPRESSIONS = {program: compiled(shape) for program, shape in SHAPES.items()}


def line(number):
    """Log line ``number``: the same one every time. One in fifty fits no pattern."""
    draw = random.Random(number)
    ip = f"203.0.113.{draw.randint(1, 254)}"
    user = draw.choice(("root", "ada", "grace", "linus"))
    kind = draw.random()
    if kind < 0.02:
        return "-- MARK --"
    if kind < 0.25:
        return f"sshd[{draw.randint(100, 9999)}]: Failed password for {user} from {ip} port 22"
    if kind < 0.30:
        return f"kernel: Out of memory: Killed process {draw.randint(2, 9999)} ({user})"
    if kind < 0.45:
        return f"CRON[{draw.randint(100, 9999)}]: ({user}) CMD (run-parts /etc/cron.hourly)"
    status = draw.choice((200, 200, 200, 304, 404, 500, 503))
    return f'nginx: {ip} "GET /item/{draw.randint(1, 500)}" {status} {draw.randint(100, 90000)}'


def parsed(text):
    """Program and fields of a line, None when no pattern fits.

    >>> parsed("sshd[7]: Failed password for root from 192.0.2.7 port 22")["user"]
    'root'
    """
    for program, expression in EXPRESSIONS.items():
        if match := expression.search(text):
            fields = match.groupdict()
            return {
                "program": program,
                "user": fields.get("user"),
                "client": fields.get("client"),
                "status": int(fields["status"]) if "status" in fields else None,
            }
    return None


def build(source=None, table=None, lookup_s=LOOKUP_S):
    """The pipeline. ``source`` is a load or a function of the session with columns ``raw`` and
    ``at`` (seconds).
    """
    from pyspark.sql import functions as sf

    source = source or Generator(load("fluctuating", scale=0.05), payload=line)
    p = Pipeline("logs", trigger_s=1.0)
    p.source("lines", source, stamp="at")

    @p.operator(
        inputs="lines",
        schema="at double, program string, user string, client string, status int",
        max_replicas=8,
    )
    def parse(event):
        fields = parsed(event["raw"])
        return fields and {"at": event["at"], **fields}

    @p.operator(inputs="parse", schema="at double, rule string, client string", max_replicas=12)
    def match(event):
        time.sleep(lookup_s)  # the service that knows which addresses are bad
        return [
            {"at": event["at"], "rule": name, "client": event["client"]}
            for name, holds in RULES
            if holds(event)
        ]

    @p.frame(inputs="match", max_replicas=2, output_mode="update")
    def count(frame):
        at = sf.timestamp_seconds("at")
        return (
            frame.withColumn("time", at)
            .withWatermark("time", f"{3 * WINDOW_S} seconds")
            .groupBy(sf.window("time", f"{WINDOW_S} seconds"), "rule")
            .count()
            .select(sf.unix_timestamp("window.start").alias("start"), "rule", "count")
        )

    @p.operator(inputs="count", max_replicas=4)
    def store(event):
        return event

    table = table or SqliteTable(
        "runs/logs.sqlite", "counts", ("start", "rule", "count"), key=("start", "rule")
    )
    p.sink("table", inputs="store", write=table)
    return p


pipeline = build()
