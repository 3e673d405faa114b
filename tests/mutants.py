"""Random changes of a file's bytes."""

import random


def mutant(draw: random.Random, whole: bytes) -> bytes:
    """Some bytes of a file changed, cut off, doubled or put in."""
    content = bytearray(whole)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if not content:
            break
        at, many = draw.randrange(len(content)), draw.choice((1, 1, 2, 4, 16))
        kind = draw.randrange(6)
        if kind == 0:
            content[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            content[at : at + many] = draw.randbytes(many)
        elif kind == 2:
            content[at : at + many] = draw.choice((b"\xff", b"\0", b"9", b"-", b"[", b"../"))[:1] * many
        elif kind == 3:
            del content[at : at + many * draw.choice((1, 100))]
        elif kind == 4:
            content[at:at] = content[at : at + many]
        else:
            other = draw.randrange(len(content))
            content[at : at + many] = content[other : other + many]
    return bytes(content)
