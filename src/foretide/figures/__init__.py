"""From a journal to figures: the record of a run, one definition of every figure, summaries,
replay.
"""
