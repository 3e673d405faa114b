"""Budgets: how long a run takes, and which runs to train next."""
