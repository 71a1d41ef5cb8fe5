"""The loop's two ends on Spark: probe, actuator, executors, and the live run that joins them."""
