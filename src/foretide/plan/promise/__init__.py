"""The parts of the promise: a share of the events within a latency target, at the least cost.

One idea per file: the level that the measured share moves, replicas from a waiting-time tail, work
that is due, rules replayed on the load, what the load so far teaches, whole replicas of several
operators, replicas on their way, replicas that are wanted again, replicas that add nothing.
"""
