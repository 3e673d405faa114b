"""The factors of a cell or stream as the flat columns of a tidy frame."""


def flat(factors: dict) -> dict:
    """`factors` with each mapping reduced to its name: `{"name": "split", "tasks": 5}` becomes `split`."""
    return {key: value["name"] if isinstance(value, dict) else value for key, value in factors.items()}
