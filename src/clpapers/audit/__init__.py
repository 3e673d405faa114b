"""Audits: whether every file is the one that its inputs make, and where a number came from."""
