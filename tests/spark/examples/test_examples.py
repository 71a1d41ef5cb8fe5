"""The example applications on Spark: each result against an independent reference, every event
exactly once.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from foretide.examples import dns, fpd, logs, microblog, opinion, ticks, vld
from foretide.examples.database import SqliteTable
from foretide.load import Load
from foretide.spark import Generator, Pipeline, Running

pytestmark = pytest.mark.spark


def events(number: int, seconds: int = 3, **settings: Any) -> Generator:
    """``number`` events over a few seconds."""
    counts = np.bincount(np.arange(number) % seconds, minlength=seconds).astype(float)
    return Generator(Load("test", counts), **settings)


def finish(pipeline: Pipeline, spark: SparkSession, path: Path) -> Running:
    with Running(pipeline, spark, path / "run") as running:
        running.wait(180)
    return running


def test_dns_verdicts_are_those_of_a_plain_recount(spark: SparkSession, tmp_path: Path) -> None:
    table = SqliteTable(
        tmp_path / "t.sqlite", "queries", ("id", "client", "name", "address", "bits", "verdict")
    )
    finish(dns.build(events(400, payload=dns.query), table, miss_s=0.0), spark, tmp_path)
    rows = table.rows()
    good = [i for i in range(400) if dns.query(i) != "malformed"]
    assert sorted(r[0] for r in rows) == good
    for number, _, name, address, bits, verdict in rows:
        assert name == dns.query(number).split()[2]
        shares = np.array(list(Counter(name).values())) / len(name)
        assert bits == pytest.approx(-(shares * np.log2(shares)).sum())
        assert (address is not None) == (name.endswith(dns.SITES)) == (verdict == "ordinary")
    assert {r[5] for r in rows} >= {"ordinary", "tunnel", "generated"}


def test_logs_are_counted_by_rule_and_window(spark: SparkSession, tmp_path: Path) -> None:
    table = SqliteTable(
        tmp_path / "t.sqlite", "counts", ("start", "rule", "count"), key=("start", "rule")
    )
    finish(logs.build(events(400, payload=logs.line), table, lookup_s=0.0), spark, tmp_path)
    counted: Counter[str] = Counter()
    for start, rule, count in table.rows():
        assert start % logs.WINDOW_S == 0
        counted[rule] += count
    text = [logs.line(i) for i in range(400)]
    assert counted == {
        "failed login": sum("Failed password" in t for t in text),
        "login as root": sum("Failed password for root" in t for t in text),
        "server error": sum(" 500 " in t or " 503 " in t for t in text),
        "out of memory": sum("Out of memory" in t for t in text),
    }


def test_opinions_add_up_to_their_moments(spark: SparkSession, tmp_path: Path) -> None:
    columns = ("part", "name", "opinions", "total", "squares")
    table = SqliteTable(tmp_path / "t.sqlite", "sums", columns, key=columns[:2], add=columns[2:])
    finish(
        opinion.build(events(600, payload=opinion.opinion), table, lookup_s=0.0), spark, tmp_path
    )
    given = pd.DataFrame(
        [[int(f) for f in opinion.opinion(i).split(";")] for i in range(600)],
        columns=["city", "age", "mark"],
    )
    regions = given.assign(name="region " + (given.city % 7).astype(str)).groupby("name").mark
    ages = (
        given.assign(name=[f"{a // 10 * 10} to {a // 10 * 10 + 9}" for a in given.age])
        .groupby("name")
        .mark
    )
    expected = {
        (part, name): (n, pytest.approx(total), pytest.approx(mean**2 * n + var * n))
        for part, groups in (("region", regions), ("age", ages))
        for name, n, total, mean, var in zip(
            groups.size().index, groups.size(), groups.sum(), groups.mean(), groups.var(ddof=0),
            strict=True,
        )
    }  # fmt: skip
    assert {(r[0], r[1]): tuple(r[2:]) for r in table.rows()} == expected


def test_ticks_match_pandas(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = ticks.build(events(300, payload=ticks.tick), 2, (2,), trigger_s=1.0)
    running = finish(pipeline, spark, tmp_path)
    at = {}
    source = pipeline.sources["exchange"].open
    assert isinstance(source, Generator)
    for first, end, base, count, start_s in source.timetable.spans(0, 300):
        for number in range(first, end):
            at[number] = start_s + (number - base + 1) / count
    raw = [ticks.tick(i).split(";") for i in range(300)]
    given = pd.DataFrame(
        {
            "id": range(300),
            "start": [int((running.started_at + at[i]) // 2 * 2) for i in range(300)],
            "company": [int(c) for c, _ in raw],
            "price": [float(p) for _, p in raw],
        }
    )
    for sector in range(2):
        rows = running.read(f"sector{sector}_2s_prices").toPandas()
        last = rows.sort_values("ticks").groupby(["start", "company"]).last()  # type: ignore[attr-defined]
        mine = given[given.company % 2 == sector].sort_values("id")
        price = mine.groupby(["start", "company"]).price
        expected = pd.DataFrame(
            {
                "first": price.first(),
                "low": price.min(),
                "mean": price.mean(),
                "high": price.max(),
                "last": price.last(),
                "ticks": price.size(),
            }
        )
        pd.testing.assert_frame_equal(
            last[list(expected.columns)].sort_index(),
            expected.sort_index(),
            check_dtype=False,
            check_index_type=False,
        )


def test_maximal_patterns_are_those_of_brute_force(spark: SparkSession, tmp_path: Path) -> None:
    posts, window, frequent = 240, 80, 9
    table = SqliteTable(
        tmp_path / "t.sqlite", "maximal", ("pattern", "change"), key=("pattern",), add=("change",)
    )
    source = events(posts, payload=lambda n: fpd.entering_and_leaving(n, window))
    finish(fpd.build(source, table, frequent, replicas=2), spark, tmp_path)
    baskets = [set(fpd.post(i)) for i in range(posts - window, posts)]
    support = {
        subset: sum(set(subset) <= basket for basket in baskets)
        for size in (1, 2, 3)
        for subset in combinations(sorted(fpd.ITEMS), size)
    }
    often = {s for s, n in support.items() if n >= frequent}
    maximal = {s for s in often if not any(set(s) < set(t) for t in often)}
    assert len(maximal) > 3
    rows = dict(table.rows())
    assert set(rows.values()) <= {0, 1}
    assert {tuple(p.split()) for p, n in rows.items() if n} == maximal


def test_microblog_branches_and_classifier(spark: SparkSession, tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    table = SqliteTable(tmp_path / "t.sqlite", "posts", microblog.COLUMNS)
    pipeline = microblog.build(events(400, payload=microblog.post), table, 0.0, 0.0)
    assert len(pipeline.steps) == 8
    finish(pipeline, spark, tmp_path)
    rows = {r[0]: r for r in table.rows()}
    assert sorted(rows) == list(range(400))
    assert len(table.rows()) == 400
    training = [microblog.drawn(-1 - n) for n in range(2000)]
    count = CountVectorizer(token_pattern="[a-z]+")
    model = MultinomialNB().fit(
        count.fit_transform([t for t, _ in training]), [spam for _, spam in training]
    )
    texts = [microblog.drawn(i)[0] for i in range(400)]
    spam = model.predict(count.transform(texts))
    assert [rows[i][2] == "user" for i in range(400)] == list(spam)
    right = np.mean([rows[i][2] == "user" for i in range(400)] == np.array(
        [microblog.drawn(i)[1] for i in range(400)]))  # fmt: skip
    assert right > 0.95
    for number, _, branch, topic, mood, text in rows.values():
        if branch == "news":
            assert topic == microblog.topic_of(microblog.drawn(number)[0])
            assert (mood is None) == (len(text) < 30)


def test_logos_are_detected(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    source = events(24, payload=vld.frame, payload_type="binary")
    running = finish(vld.build(source, replicas=2), spark, tmp_path)
    rows = running.read("verdicts").collect()
    assert sorted(r["frame"] for r in rows) == list(range(24))
    verdicts = {r["frame"]: json.loads(r["logos"]) for r in rows}
    precision, recall = vld.quality(verdicts)
    assert precision >= 0.9
    assert recall >= 0.8
