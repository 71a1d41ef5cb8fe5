"""The live dashboard: reads a journal, serves a page."""
