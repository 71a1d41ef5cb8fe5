"""Host-level planners (FUGU) and the placement mathematics that only they use."""
