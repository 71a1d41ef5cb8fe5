"""The simulator: a twin of the pipeline, fast enough for months of load.

``environment.Simulation`` is Probe and Actuator; behind it the event engine, micro-batches as Spark
runs them, or a fluid without events.
"""
