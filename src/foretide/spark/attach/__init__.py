"""Scaling an application that already runs: its progress reports in, executors out."""
