"""Opinions: a dispatcher, a city lookup whose cost depends on the city, two analyses, a persister.

Looking a city up takes 10 to 100 ms, by city, and some cities are named far more often (Zipf 1.5):
a grouping that learns what cities cost (``osg``) keeps replicas evenly busy.
Run it: foretide run foretide.examples.opinion:pipeline --mode act --target 10
"""

import random
import time

from foretide.examples.database import SqliteTable
from foretide.load import load
from foretide.spark import Generator, Pipeline

CITIES = 50
LOOKUP_S = 0.01
SUMS = "part string, name string, opinions long, total double, squares double"


def opinion(number):
    """Opinion ``number``: city, age and a mark from 1 to 5; the same one every time."""
    draw = random.Random(number)
    weights = [1 / (c + 1) ** 1.5 for c in range(CITIES)]
    city = draw.choices(range(CITIES), weights)[0]
    mark = min(5, max(1, round(draw.gauss(3 + (city % 3 - 1) * 0.5, 1))))
    return f"{city};{draw.randint(16, 90)};{mark}"


def region(city):
    """The region of a city: what the lookup returns."""
    return f"region {city % 7}"


def sums(part, names, marks):
    """Count, sum and sum of squares of the marks per name: they add up over batches.

    >>> sums("city", ["a", "b", "a"], [1, 5, 4])
    [('city', 'a', 2, 5.0, 17.0), ('city', 'b', 1, 5.0, 25.0)]
    """
    rows = {}
    for name, mark in zip(names, marks, strict=True):
        n, total, squares = rows.get(name, (0, 0.0, 0.0))
        rows[name] = (n + 1, total + mark, squares + mark * mark)
    return [(part, name, *values) for name, values in rows.items()]


def build(source=None, table=None, lookup_s=LOOKUP_S):
    """The pipeline. ``source`` is a load or a function of the session with a column ``raw``."""
    import pyarrow as pa

    source = source or Generator(load("erratic", scale=0.3), payload=opinion)
    p = Pipeline("opinion", trigger_s=1.0)
    p.source("opinions", source)

    @p.operator(
        inputs="opinions",
        outputs={
            "place": "city long, mark double",
            "person": "age long, mark double",
        },
        max_replicas=8,
    )
    def dispatch(event):
        city, age, mark = map(int, event["raw"].split(";"))
        return [("place", {"city": city, "mark": mark}), ("person", {"age": age, "mark": mark})]

    @p.operator(
        inputs="dispatch:place",
        schema="region string, mark double",
        cost="city",
        grouping="osg",
        max_replicas=12,
    )
    def city_lookup(event):
        time.sleep(lookup_s * (1 + event["city"] % 10))  # some cities have larger registers
        return {"region": region(event["city"]), "mark": event["mark"]}

    def partial(part, batch, names):
        rows = sums(part, names, batch.column("mark").to_pylist())
        columns = list(zip(*rows, strict=True))
        return pa.RecordBatch.from_pydict(
            dict(zip(("part", "name", "opinions", "total", "squares"), columns, strict=True))
        )

    @p.batches(inputs="city_lookup", schema=SUMS, max_replicas=4)
    def city_analysis(batch):
        return partial("region", batch, batch.column("region").to_pylist())

    @p.batches(inputs="dispatch:person", schema=SUMS, max_replicas=4)
    def age_analysis(batch):
        decades = [f"{age // 10 * 10} to {age // 10 * 10 + 9}" for age in batch["age"].to_pylist()]
        return partial("age", batch, decades)

    @p.operator(inputs=["city_analysis", "age_analysis"], max_replicas=4)
    def persist(event):
        return event

    table = table or SqliteTable(
        "runs/opinion.sqlite",
        "opinions",
        ("part", "name", "opinions", "total", "squares"),
        key=("part", "name"),
        add=("opinions", "total", "squares"),
    )
    p.sink("table", inputs="persist", write=table)
    return p


pipeline = build()
