"""Durable edges between operators: what is delivered, what is read, what is committed."""
