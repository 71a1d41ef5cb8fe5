"""Topologies of the papers with service times and selectivities, usable live and simulated."""
