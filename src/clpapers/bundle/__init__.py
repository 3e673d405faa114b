"""Runs that travel: a bundle holds all they need, for a machine without network, Snakemake or this PyTorch."""
