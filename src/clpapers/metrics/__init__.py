"""Numbers from runs and streams: pure functions on arrays, and one `measure` module a kind of target."""
