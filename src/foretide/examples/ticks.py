"""Stock ticks: 35 windowed queries, each with first, min, average, max and last price per company.

Seven sectors times five window lengths, every query a stateful operator of its own on shared
executors. 36 streaming queries want a cluster; on one machine take fewer: ``build(sectors=2)``.
Run it: foretide run foretide.examples.ticks:pipeline --mode act --target 30
"""

import random

from foretide.load import load
from foretide.spark import Generator, Pipeline

SECTORS = 7
COMPANIES = 20
WINDOWS_S = (5, 10, 20, 40, 60)


def tick(number):
    """Tick ``number``: company and price; the same one every time."""
    draw = random.Random(number)
    company = draw.randrange(COMPANIES)
    return f"{company};{round(100 + company + draw.gauss(0, 2), 2)}"


def sector(company, sectors=SECTORS):
    return company % sectors


def build(source=None, sectors=SECTORS, windows_s=WINDOWS_S, trigger_s=5.0):
    """The pipeline. ``source`` is a load or a function of the session with columns ``raw`` and
    ``at`` (seconds).
    """
    from pyspark.sql import functions as sf

    source = source or Generator(load("ticks", scale=0.2), payload=tick)
    p = Pipeline("ticks", trigger_s=trigger_s)
    p.source("exchange", source, stamp="at")

    @p.operator(
        inputs="exchange",
        schema="id long, at double, company int, sector int, price double",
        max_replicas=4,
    )
    def feed(event):
        company, price = event["raw"].split(";")
        return {
            "id": event["id"],
            "at": event["at"],
            "company": int(company),
            "sector": sector(int(company), sectors),
            "price": float(price),
        }

    def query(length_s):
        def windowed(frame):
            price = sf.struct("id", "price")
            return (
                frame.withColumn("time", sf.timestamp_seconds("at"))
                .withWatermark("time", f"{2 * length_s} seconds")
                .groupBy(sf.window("time", f"{length_s} seconds"), "company")
                .agg(
                    sf.min(price).getField("price").alias("first"),
                    sf.min("price").alias("low"),
                    sf.avg("price").alias("mean"),
                    sf.max("price").alias("high"),
                    sf.max(price).getField("price").alias("last"),
                    sf.count("price").alias("ticks"),
                )
                .select(
                    sf.unix_timestamp("window.start").alias("start"),
                    *("company", "first", "low", "mean", "high", "last", "ticks"),
                )
            )

        return windowed

    for number in range(sectors):
        for length_s in windows_s:
            name = f"sector{number}_{length_s}s"
            given = {"feed": f"sector = {number}"}
            p.frame(inputs=given, name=name, max_replicas=4, output_mode="update")(query(length_s))
            p.sink(f"{name}_prices", inputs=name)
    return p


pipeline = build()
