"""What ends a command with one line."""


class Refusal(Exception):
    """What a person must be told in one line: what is wrong, and the remedy."""
