"""What runs in Spark's Python workers. Imports nothing else of the Spark package."""
