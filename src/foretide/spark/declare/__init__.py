"""Declaring a pipeline, and resolving its names and schemas before anything starts."""
