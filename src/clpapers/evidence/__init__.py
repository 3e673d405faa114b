"""Evidence: how far printed numbers are reproduced, and whether claims hold."""
