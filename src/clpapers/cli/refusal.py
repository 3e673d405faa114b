"""The refusal of a command, in a module of its own: a job that travelled needs it and reads no configuration."""


class Refusal(Exception):
    """A fault of the call or the data, for a person, in one line with the remedy."""
