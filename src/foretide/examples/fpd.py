"""Frequent patterns: maximal sets of words that are frequent in a sliding window of posts.

``generate`` sends every subset of an entering post with +1 and of the leaving post with -1.
``detect`` counts each pattern; when one becomes frequent or stops being so, it says so to the
patterns with one word less, through a loop: a frequent pattern is maximal while no larger one
covers it. ``report`` keeps the maximal ones. Changes add up, so their order does not matter.
Run it: foretide run foretide.examples.fpd:pipeline --mode act --target 20
"""

import random
from itertools import combinations

from foretide.examples.database import SqliteTable
from foretide.load import load
from foretide.spark import Generator, Pipeline

WINDOW = 200
FREQUENT = 20
LARGEST = 3
ITEMS = ("sun", "rain", "goal", "vote", "song", "tram", "cafe", "book", "film", "snow")
CHANGE = "kind string, pattern string, change int"


def post(number):
    """The words of post ``number``: the same ones every time; some words go together."""
    draw = random.Random(number)
    base = draw.choice((("sun", "cafe", "book"), ("goal", "vote"), ("rain", "tram", "film"), ()))
    return sorted({*(w for w in base if draw.random() < 0.8), *draw.sample(ITEMS, 2)})


def entering_and_leaving(number, window=WINDOW):
    """The post that enters the window and the one that leaves it, as text."""
    old = post(number - window) if number >= window else ()
    return f"{' '.join(post(number))}|{' '.join(old)}"


def patterns(words, largest=LARGEST):
    """All subsets with 1 to ``largest`` words.

    >>> patterns(["b", "a", "c"], largest=2)
    ['a', 'b', 'c', 'a b', 'a c', 'b c']
    """
    return [
        " ".join(subset)
        for size in range(1, largest + 1)
        for subset in combinations(sorted(words), size)
    ]


def smaller(pattern):
    """The patterns with one word less.

    >>> smaller("a b c"), smaller("a")
    (['a b', 'a c', 'b c'], [])
    """
    words = pattern.split()
    return [" ".join(s) for s in combinations(words, len(words) - 1)] if len(words) > 1 else []


def detected(pattern, before, after, frequent):
    """What follows when (count, frequent patterns that cover it) of a pattern change.

    >>> detected("a b", (4, 0), (5, 0), frequent=5)
    [('cover', 'a', 1), ('cover', 'b', 1), ('report', 'a b', 1)]
    >>> detected("a", (9, 0), (9, 1), frequent=5)
    [('report', 'a', -1)]
    """
    was, now = before[0] >= frequent, after[0] >= frequent
    changes = [("cover", p, int(now) - int(was)) for p in smaller(pattern)] if was != now else []
    maximal = int(now and after[1] == 0) - int(was and before[1] == 0)
    return [*changes, *([("report", pattern, maximal)] if maximal else [])]


def build(source=None, table=None, frequent=FREQUENT, replicas=4):
    """The pipeline. ``source`` is a load or a function of the session with a column ``raw``:
    the entering post, a bar, the leaving post.
    """
    import pandas as pd

    source = source or Generator(load("periodic", scale=0.01), payload=entering_and_leaving)
    p = Pipeline("fpd", trigger_s=1.0)
    p.source("posts", source)

    @p.operator(inputs="posts", schema=CHANGE, max_replicas=8)
    def generate(event):
        entering, leaving = event["raw"].split("|")
        return [
            {"kind": "count", "pattern": pattern, "change": change}
            for words, change in ((entering.split(), 1), (leaving.split(), -1))
            for pattern in patterns(words)
        ]

    def counted(key, frames, state):
        before = state.get if state.exists else (0, 0)
        count, covered = before
        for frame in frames:
            counts = frame["kind"] == "count"
            count += int(frame["change"][counts].sum())
            covered += int(frame["change"][~counts].sum())
        state.update((count, covered))
        changes = detected(key[0], before, (count, covered), frequent)
        yield pd.DataFrame(changes, columns=["kind", "pattern", "change"])

    @p.frame(
        inputs={"generate": None, "detect": "kind = 'cover'"},
        schema=CHANGE,
        max_replicas=replicas,
        output_mode="update",
    )
    def detect(frame):
        return frame.groupBy("pattern").applyInPandasWithState(
            counted, CHANGE, "count int, covered int", "update", "NoTimeout"
        )

    @p.operator(inputs={"detect": "kind = 'report'"}, max_replicas=4)
    def report(event):
        return event

    table = table or SqliteTable(
        "runs/fpd.sqlite", "maximal", ("pattern", "change"), key=("pattern",), add=("change",)
    )
    p.sink("table", inputs="report", write=table)
    return p


pipeline = build()
