"""The simulator: a twin of the pipeline with the same Probe and Actuator, and no Spark."""
