"""Research objects: runs with everything they came from, to send, to check and to take in."""
