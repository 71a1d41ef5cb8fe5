"""Microblog posts through eight operators: spam filter, a user and a news branch, topics, mood.

``spam`` is a naive Bayes classifier that is trained when the pipeline is declared; ``sentiment``
and ``topic`` score words. Spam goes to the user branch (notify the author), the rest to the news
branch, and everything ends as a row in SQLite.
Run it: foretide run foretide.examples.microblog:pipeline --mode act --target 10
"""

import json
import math
import random
import re
import time
from collections import Counter

from foretide.examples.database import SqliteTable
from foretide.load import load
from foretide.spark import Generator, Pipeline

NOTIFY_S = 0.01
LOOKUP_S = 0.02
WORDS = {
    "sport": ("goal", "match", "league", "coach", "derby", "final"),
    "music": ("album", "concert", "guitar", "playlist", "tour", "song"),
    "politics": ("election", "minister", "court", "budget", "protest", "vote"),
}
GOOD = ("great", "happy", "love", "best", "wonderful")
BAD = ("sad", "awful", "hate", "worst", "boring")
BAIT = ("free", "win", "click", "cheap", "followers", "prize", "offer")
COLUMNS = ("id", "user", "branch", "topic", "mood", "text")


def words(text):
    return re.findall(r"[a-z]+", text.lower())


def drawn(number):
    """(text, is it spam) of post ``number``: the same one every time."""
    draw = random.Random(number)
    vocabulary = [w for topic in WORDS.values() for w in topic] + list(GOOD + BAD)
    if draw.random() < 0.2:
        return " ".join(draw.choices(BAIT, k=4) + draw.choices(vocabulary, k=2)), True
    return " ".join(draw.choices(vocabulary, k=6) + draw.choices(BAIT, k=draw.randint(0, 1))), False


def post(number):
    """Post ``number`` as JSON."""
    return json.dumps({"id": number, "user": number % 97, "text": drawn(number)[0]})


class Spam:
    """Multinomial naive Bayes with add-one smoothing: ``log P(c) + sum log P(w | c)``."""

    def __init__(self, examples):
        texts = {c: [words(t) for t, spam in examples if spam == c] for c in (False, True)}
        counts = {c: Counter(w for t in texts[c] for w in t) for c in texts}
        known = set().union(*counts.values())
        self.prior = {c: math.log(len(texts[c]) / len(examples)) for c in texts}
        self.logs = {
            w: {
                c: math.log((counts[c][w] + 1) / (sum(counts[c].values()) + len(known)))
                for c in texts
            }
            for w in known
        }

    def probability(self, text):
        """How likely ``text`` is spam; words never seen in training say nothing."""
        seen = [w for w in words(text) if w in self.logs]
        score = {c: self.prior[c] + sum(self.logs[w][c] for w in seen) for c in self.prior}
        return 1 / (1 + math.exp(min(500.0, score[False] - score[True])))


def topic_of(text):
    """The topic with most words in the text; the first of equals, "other" without any."""
    hits = {name: sum(w in topic for w in words(text)) for name, topic in WORDS.items()}
    best = max(hits, key=lambda name: hits[name])
    return best if hits[best] else "other"


def mood(text):
    """Good words minus bad ones."""
    return sum((w in GOOD) - (w in BAD) for w in words(text))


def build(source=None, table=None, notify_s=NOTIFY_S, lookup_s=LOOKUP_S):
    """The pipeline. ``source`` is a load or a function of the session with a column ``raw``."""
    source = source or Generator(load("twitter-smoothed", scale=0.02), payload=post)
    filter_spam = Spam([drawn(-1 - n) for n in range(2000)])
    raw = "id long, user long, text string"
    full = f"{raw}, branch string, topic string, mood int"
    p = Pipeline("microblog", trigger_s=1.0)
    p.source("posts", source)

    @p.operator(inputs="posts", schema=raw, max_replicas=8)
    def parse(event):
        post = json.loads(event["raw"])
        return {"id": post["id"], "user": post["user"], "text": " ".join(post["text"].split())}

    @p.operator(inputs="parse", outputs={"user": raw, "news": raw}, max_replicas=8)
    def spam(event):
        return ("user" if filter_spam.probability(event["text"]) > 0.5 else "news", event)

    @p.operator(inputs="spam:user", max_replicas=8)
    def user(event):
        return event

    @p.operator(inputs="user", schema=full, max_replicas=8)
    def notify(event):
        time.sleep(notify_s)  # the service that writes to the author
        return {**event, "branch": "user", "topic": "spam", "mood": None}

    moody = f"{raw}, mood int"

    @p.operator(inputs="spam:news", outputs={"short": moody, "long": moody}, max_replicas=8)
    def news(event):
        return ("short" if len(event["text"]) < 30 else "long", event)

    @p.operator(inputs="news:long", max_replicas=8)
    def sentiment(event):
        time.sleep(lookup_s)  # the service that knows what names stand for
        return {**event, "mood": mood(event["text"])}

    @p.operator(inputs=["news:short", "sentiment"], schema=full, max_replicas=8)
    def topic(event):
        return {**event, "branch": "news", "topic": topic_of(event["text"])}

    @p.operator(inputs=["notify", "topic"], max_replicas=8)
    def store(event):
        return event

    p.sink(
        "table",
        inputs="store",
        write=table or SqliteTable("runs/microblog.sqlite", "posts", COLUMNS),
    )
    return p


pipeline = build()
