"""Groupings: which replica gets which event. Pure array code, called by the Spark pipelines and by the simulator."""
