"""The apps of PA-SPS: four-operator chains on tweets, DNS traffic and system logs, and the
eight-operator Twitter app.

Service times are the busy loops of the authors' public code (cost 1 is about 0.66 ms). The paper
gives no costs for the DNS and log apps, so they take the linear app's. Events older than 30 s are
dropped at each operator, and the trace's second arrives at once.
"""

from __future__ import annotations

from foretide.apps.app import App, Service
from foretide.topology import Operator, Topology

COST_S = 0.00066
TIMEOUT_S = 30.0


def _chain(
    name: str, summary: str, operators: tuple[str, ...], load: str, over_replicas: int
) -> App:
    chain = tuple(
        Operator(o, inputs=operators[i - 1 : i] if i else ()) for i, o in enumerate(operators)
    )
    return App(
        name,
        summary,
        "PA-SPS, section 4",
        Topology(chain),
        {
            o: Service(cost * COST_S)
            for o, cost in zip(operators, (1.0, 2.0, 1.5, 1.0), strict=True)
        },
        timeout_s=TIMEOUT_S,
        load=load,
        over_replicas=over_replicas,
    )


_COMPLEX_COSTS = {
    "parse": 1,
    "spam": 5,
    "user": 1,
    "notify": 1,
    "store": 1,
    "news": 2,
    "topic": 2,
    "sentiment": 5,
}

TWITTER_COMPLEX = App(
    "twitter-complex",
    "eight operators: spam filter, user and news branches, topics, sentiment",
    "PA-SPS, section 4.5",
    Topology(
        (
            Operator("parse"),
            Operator("spam", inputs=("parse",)),
            Operator("user", inputs=("spam",)),
            Operator("news", inputs=("spam",)),
            Operator("notify", inputs=("user",)),
            Operator("sentiment", inputs=("news",)),
            Operator("topic", inputs=("news", "sentiment")),
            Operator("store", inputs=("notify", "topic")),
        )
    ),
    {o: Service(cost * COST_S) for o, cost in _COMPLEX_COSTS.items()},
    selectivity={
        ("spam", "user"): 0.2,
        ("spam", "news"): 0.8,
        ("news", "topic"): 0.1,
        ("news", "sentiment"): 0.9,
    },
    splits=frozenset({"spam", "news"}),
    timeout_s=TIMEOUT_S,
    load="twitter-smoothed",
)

APPS = (
    _chain(
        "twitter-linear",
        "tweets through parse, spam, topic, store",
        ("parse", "spam", "topic", "store"),
        "twitter-smoothed",
        32,
    ),
    TWITTER_COMPLEX,
    _chain(
        "dns",
        "DNS queries through parse, resolve, classify, store",
        ("parse", "resolve", "classify", "store"),
        "periodic",
        12,
    ),
    _chain(
        "logs",
        "log lines through parse, match, count, store",
        ("parse", "match", "count", "store"),
        "fluctuating",
        32,
    ),
)
