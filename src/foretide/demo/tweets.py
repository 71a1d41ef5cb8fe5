"""The demo's pipeline: tweets are parsed, scored for spam, given a topic and stored in SQLite, each
by an operator of its own.

Every operator does real work. Two of them also ask a remote service, which is a wait: a replica
that waits needs a slot, not a core, so a small machine can show many. Owns the made-up tweets, the
four functions and the writer; knows nothing of the loop.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from foretide.load import Load
from foretide.model import Array
from foretide.spark.declare.generator import Generator
from foretide.spark.declare.pipeline import Pipeline

REPUTATION_S = 0.012
LOOKUP_S = 0.040

OPENERS = (
    "just saw",
    "cannot believe",
    "so happy about",
    "thinking about",
    "everybody talks about",
    "breaking:",
    "live now:",
)
TOPICS = {
    "sport": ("goal", "match", "league", "coach", "derby", "final"),
    "music": ("album", "concert", "guitar", "playlist", "tour", "song"),
    "news": ("election", "minister", "court", "budget", "protest", "vote"),
    "weather": ("storm", "rain", "heat", "snow", "flood", "wind"),
}
BAIT = (
    "FREE followers!!! CLICK http://win.example/a",
    "WIN a phone NOW!!! http://win.example/b",
    "cheap pills $$$ http://pills.example",
)
WEIGHTS = {"links": 1.6, "shouting": 6.0, "exclamations": 0.9, "money": 1.4, "bait": 1.2}
BIAS = -3.0
COLUMNS = "id INTEGER, user INTEGER, created_at REAL, text TEXT, spam REAL, topic TEXT, print TEXT"


SEASON_S, REST_S, HUMP_S = 120, 35, 25
REST, TOP = 15.0, 140.0
PAST_SEASONS = 20


def demo_load(duration_s: int, starts_s: int = 0, seed: int = 7) -> Load:
    """Seasons of two minutes, events/s: 15, from second 35 to 60 a hump up to 140, then 15 again,
    with 5 % noise. The load begins ``starts_s`` seconds into a season.
    """
    return Load("a hump every two minutes", _seasons(starts_s, duration_s, seed))


def demo_past(elapsed_s: float, seed: int = 8) -> Load:
    """The load before the instant ``elapsed_s`` seconds after a season began: the same seasons."""
    until_s = round(elapsed_s)
    starts_s = until_s % SEASON_S
    return Load("the minutes before", _seasons(starts_s, PAST_SEASONS * SEASON_S, seed))


def _seasons(starts_s: int, duration_s: int, seed: int) -> Array:
    t = (starts_s + np.arange(duration_s)) % SEASON_S
    hump = np.sin(np.pi * np.clip((t - REST_S) / HUMP_S, 0.0, 1.0))
    noise = 1 + 0.05 * np.random.default_rng(seed).standard_normal(duration_s)
    return np.maximum((REST + (TOP - REST) * hump**1.5) * noise, 0.0)


@dataclass(frozen=True)
class Tweets(Generator):
    """A load of tweets as JSON text; tweet number ``id`` of a seed is always the same, about one in
    eight is spam.
    """

    def stream(self, spark: SparkSession, started_at: float) -> DataFrame:
        words = [w for topic in TOPICS.values() for w in topic]
        text = sf.concat_ws(
            " ",
            self._one_of(OPENERS, "opener"),
            sf.lit("the"),
            self._one_of(words, "first"),
            self._one_of(words, "second"),
        )
        bait = sf.concat_ws(" ", text, self._one_of(BAIT, "bait"))
        tweet = sf.struct(
            sf.col("id"),
            sf.col("key").alias("user"),
            sf.col("at").alias("created_at"),
            sf.when(sf.col("value") < 0.125, bait).otherwise(text).alias("text"),
        )
        return super().stream(spark, started_at).select("at", sf.to_json(tweet).alias("raw"))

    def _one_of(self, choices: list[str] | tuple[str, ...], salt: str) -> Column:
        drawn = sf.floor(self._uniform(salt) * len(choices)).cast("int")
        return sf.element_at(sf.array(*[sf.lit(c) for c in choices]), drawn + 1)


def spam_score(text: str) -> float:
    """How likely spam is, 0 to 1: a logistic model on links, capitals, exclamation marks, money
    signs and baiting words.

    >>> spam_score("just saw the final match") < 0.1
    True
    >>> spam_score("WIN a phone NOW!!! http://win.example/b") > 0.9
    True
    """
    letters = [c for c in text if c.isalpha()]
    signs = {
        "links": len(re.findall(r"https?://", text)),
        "shouting": sum(c.isupper() for c in letters) / max(1, len(letters)),
        "exclamations": text.count("!"),
        "money": text.count("$"),
        "bait": len(re.findall(r"\b(free|win|cheap|click|now)\b", text.lower())),
    }
    return 1 / (1 + math.exp(-BIAS - sum(WEIGHTS[k] * v for k, v in signs.items())))


def topic_of(text: str) -> str:
    """The topic with most of its words in the text; the first of equals, "other" without any.

    >>> topic_of("live now: the storm flood"), topic_of("hello")
    ('weather', 'other')
    """
    said = set(re.findall(r"[a-z]+", text.lower()))
    hits = {name: len(said.intersection(words)) for name, words in TOPICS.items()}
    best = max(hits, key=lambda name: hits[name])
    return best if hits[best] else "other"


class Table:
    """Writes each batch in one transaction with its batch id, so that a batch that comes again is
    not written twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.write([tuple(row) for row in frame.collect()], batch)

    def write(self, rows: list[tuple[Any, ...]], batch: int) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS batches (id INTEGER PRIMARY KEY, events INTEGER)"
            )
            db.execute(f"CREATE TABLE IF NOT EXISTS tweets ({COLUMNS})")
            if db.execute(
                "INSERT OR IGNORE INTO batches VALUES (?, ?)", (batch, len(rows))
            ).rowcount:
                db.executemany("INSERT INTO tweets VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def counts(self) -> dict[str, int]:
        """Tweets stored, by topic; spam is one of them. Empty before the first batch."""
        if not self.path.exists():
            return {}
        with closing(sqlite3.connect(self.path)) as db:
            return dict(
                db.execute(
                    "SELECT topic, count(*) FROM tweets GROUP BY topic ORDER BY 2 DESC"
                ).fetchall()
            )


def tweets(load: Load, table: Table, after_s: float = 0.0, trigger_s: float = 2.0) -> Pipeline:
    """Parse, score, find the topic, store: every tweet that comes in is a row in the end.

    Every event is timed: in a few minutes one hiccup of the machine, counted for ten events, would
    be taken for slow work.
    """
    p = Pipeline("tweets", trigger_s=trigger_s, sample_every=1)
    p.source("stream", Tweets(load, after_s=after_s, keys=50, skew=1.0))

    @p.operator(
        inputs="stream",
        schema="id long, user long, created_at double, text string",
        max_replicas=12,
    )
    def parse(event: dict[str, Any]) -> dict[str, Any]:
        tweet = json.loads(event["raw"])
        return {
            "id": tweet["id"],
            "user": tweet["user"],
            "created_at": tweet["created_at"],
            "text": " ".join(tweet["text"].split()),
        }

    @p.operator(
        inputs="parse",
        schema="id long, user long, created_at double, text string, spam double",
        max_replicas=12,
    )
    def spam(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(REPUTATION_S)  # the service that knows the author's reputation
        return {**event, "spam": spam_score(event["text"])}

    @p.operator(
        inputs="spam",
        schema="id long, user long, created_at double, text string, spam double, topic string",
        max_replicas=12,
    )
    def topic(event: dict[str, Any]) -> dict[str, Any]:
        time.sleep(LOOKUP_S)  # the service that knows what names stand for
        return {**event, "topic": "spam" if event["spam"] >= 0.5 else topic_of(event["text"])}

    @p.operator(
        inputs="topic",
        schema="id long, user long, created_at double, text string, spam double, topic string, "
        "print string",
        max_replicas=12,
    )
    def store(event: dict[str, Any]) -> dict[str, Any]:
        return {
            **event,
            "print": hashlib.blake2b(event["text"].lower().encode(), digest_size=8).hexdigest(),
        }

    p.sink("table", inputs="store", write=table)
    return p
