"""DNS queries: parse, resolve against a local zone, classify names by their entropy, store.

One query in eight is malformed, tunnels data through long names or comes from a generator of
domain names. ``resolve`` follows aliases in a zone of its own and waits as a cache miss would.
Run it: foretide run foretide.examples.dns:pipeline --mode act --target 10
"""

import math
import random
import time
from collections import Counter

from foretide.examples.database import SqliteTable
from foretide.load import load
from foretide.spark import Generator, Pipeline

MISS_S = 0.02
HOSTS = ("www", "mail", "api", "cdn", "login", "static", "img", "shop")
SITES = ("example.org", "example.net", "river.test", "harbour.test", "lighthouse.test")
ZONE = {
    f"{host}.{site}": ("A", f"192.0.2.{1 + i * len(SITES) + j}")
    for i, host in enumerate(HOSTS[:5])
    for j, site in enumerate(SITES)
} | {f"{host}.{site}": ("CNAME", f"cdn.{site}") for host in HOSTS[5:] for site in SITES}
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def query(number):
    """Query number ``number`` as a log line: the same one every time."""
    draw = random.Random(number)
    kind = draw.random()
    if kind < 0.03:
        return "malformed"
    if kind < 0.07:  # data smuggled out in the name
        name = ".".join("".join(draw.choices(ALPHABET, k=48)) for _ in range(2)) + ".tunnel.test"
    elif kind < 0.12:  # a domain generation algorithm
        name = "".join(draw.choices(ALPHABET, k=draw.randint(16, 24))) + ".test"
    else:
        name = f"{draw.choice(HOSTS)}.{draw.choice(SITES)}"
    return f"{number} 198.51.100.{draw.randint(1, 254)} {name} {draw.choice(('A', 'AAAA'))}"


def parsed(line):
    """The fields of a log line, None when it is malformed.

    >>> parsed("7 198.51.100.9 WWW.Example.ORG. A")["name"], parsed("malformed")
    ('www.example.org', None)
    """
    fields = line.split()
    if len(fields) != 4:
        return None
    number, client, name, kind = fields
    return {
        "id": int(number),
        "client": client,
        "name": name.lower().rstrip("."),
        "kind": kind,
    }


def resolved(name, zone=ZONE, hops=8):
    """The address of a name in the zone, through at most ``hops`` aliases; None: no such name.

    >>> resolved("www.example.org"), resolved("img.example.org") == resolved("cdn.example.org")
    ('192.0.2.1', True)
    >>> resolved("nowhere.test") is None
    True
    """
    for _ in range(hops):
        kind, value = zone.get(name, (None, None))
        if kind != "CNAME":
            return value
        name = value
    return None


def entropy(text):
    """Shannon entropy of the characters, in bits.

    >>> entropy("aabb"), entropy("aaaa")
    (1.0, 0.0)
    """
    counts = Counter(text).values()
    return abs(sum(n / len(text) * math.log2(len(text) / n) for n in counts))


def verdict(name, address):
    """tunnel: a very long name. generated: nobody knows it and it looks random. unknown: nobody
    knows it. ordinary: it has an address.
    """
    longest = max(name.split("."), key=len)
    if len(name) > 60:
        return "tunnel"
    if address is not None:
        return "ordinary"
    return "generated" if len(longest) >= 12 and entropy(longest) > 3.2 else "unknown"


def build(source=None, table=None, miss_s=MISS_S):
    """The pipeline. ``source`` is a load or a function of the session with a column ``raw``."""
    source = source or Generator(load("periodic", scale=0.05), payload=query)
    p = Pipeline("dns", trigger_s=1.0)
    p.source("queries", source)

    @p.operator(
        inputs="queries", schema="id long, client string, name string, kind string", max_replicas=8
    )
    def parse(event):
        return parsed(event["raw"])

    @p.operator(
        inputs="parse",
        schema="id long, client string, name string, kind string, address string",
        max_replicas=12,
    )
    def resolve(event):
        time.sleep(miss_s)  # the way to an upstream server
        return {**event, "address": resolved(event["name"])}

    @p.operator(
        inputs="resolve",
        schema="id long, client string, name string, address string, bits double, verdict string",
        max_replicas=8,
    )
    def classify(event):
        return {
            "id": event["id"],
            "client": event["client"],
            "name": event["name"],
            "address": event["address"],
            "bits": entropy(event["name"]),
            "verdict": verdict(event["name"], event["address"]),
        }

    @p.operator(inputs="classify", max_replicas=8)
    def store(event):
        return event

    columns = ("id", "client", "name", "address", "bits", "verdict")
    p.sink(
        "table", inputs="store", write=table or SqliteTable("runs/dns.sqlite", "queries", columns)
    )
    return p


pipeline = build()
