"""A pipeline that runs: its queries, its accounts, its folder, its end."""
