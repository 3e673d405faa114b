"""Chooses a job's GPU: jobs share a card as far as its memory goes, by locks that die with their holders."""

import atexit
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ASKED = ("nvidia-smi", "--query-gpu=uuid,memory.total,memory.free,mig.mode.current", "--format=csv,noheader,nounits")
POLL = 2.0  # seconds between looks for a free card
CONTEXT = 600  # megabytes that CUDA takes of a card for a process, beside what PyTorch allocates
MOSTLY = 0.9  # of a card's memory, free: no other program is to blame where that does not suffice


class Card(NamedTuple):
    """A GPU: the name that CUDA and NVIDIA's driver have for it, and its memory in megabytes (2**20 bytes)."""

    uuid: str
    memory: int
    free: int  # of all programs


class Share(NamedTuple):
    """A job's share of a card, in megabytes."""

    card: Card
    memory: int

    @property
    def fraction(self) -> float:
        """The part of the card's memory that PyTorch may allocate."""
        return 1.0 if self.memory == self.card.memory else max(self.memory - CONTEXT, 0) / self.card.memory

    @property
    def is_whole(self) -> bool:
        """Whether the job had the card to itself. A job that does not fit then does not fit the card."""
        return self.memory == self.card.memory and self.card.free > MOSTLY * self.card.memory


def visible() -> list[Card]:
    """The cards that a process may use: the ones in CUDA_VISIBLE_DEVICES if it is set.

    Asks NVIDIA's driver by `nvidia-smi` and neither PyTorch nor CUDA, which would take memory of a card to answer.
    Empty where that command is missing, or cards are divided into parts (MIG).
    """
    try:
        answer = subprocess.run(ASKED, capture_output=True, text=True, check=True, timeout=60).stdout
        rows = [[field.strip() for field in line.split(",")] for line in answer.splitlines()]
        cards = [Card(uuid, int(memory), int(free)) for uuid, memory, free, mig in rows if mig != "Enabled"]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    if len(cards) < len(rows):
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return cards
    seen: list[Card] = []
    for name in named.split(","):
        name = name.strip()
        if name.isdecimal():
            found = cards[int(name) : int(name) + 1]
        else:
            found = [card for card in cards if name.startswith("GPU-") and card.uuid.startswith(name)]
        if not found:
            break  # as CUDA does: what follows a name that it does not know is not seen
        seen += found
    return seen


def take(megabytes: int) -> Share | None:
    """Take memory of a card until this process ends, and make that card the only one that CUDA sees.

    Waits while no card has it, first come, first served. To be called before CUDA is initialised. Jobs of one user
    on one machine know of each other, in whatever folder they run.

    Parameters
    ----------
    megabytes: of memory; 0, or more than a card has: all of a card that no other job uses.

    Returns
    -------
    None where `visible` knows no card: which one is then CUDA's choice, as where a cluster gave the job a part of one.
    """
    if not visible():
        return None
    folder, waiting = _folder(), False
    with _turn(folder):
        while (share := _best_share(cards := visible(), _taken_megabytes(folder), megabytes)) is None:
            if not waiting:
                print(f"waiting for {megabytes or 'all'} MB of a GPU", file=sys.stderr, flush=True)
            waiting = True
            time.sleep(POLL)
        handle, _ = tempfile.mkstemp(prefix=f"{share.card.uuid}.{share.memory}.", dir=folder)
        fcntl.flock(handle, fcntl.LOCK_EX)  # never closed: it ends with this process, however that ends
    if len(cards) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = share.card.uuid
    return share


def start_mps() -> bool:
    """Let the processes that start from here on compute on a card at once, by NVIDIA's MPS; whether it runs now.

    Without it they take turns. It ends with this process. Where it runs already, or is not there, nothing is started.
    """
    control, variable = shutil.which("nvidia-cuda-mps-control"), "CUDA_MPS_PIPE_DIRECTORY"
    if not control or variable in os.environ:
        return variable in os.environ
    folder = tempfile.mkdtemp(prefix="clpapers-mps-")
    environment = os.environ | {variable: folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    if subprocess.run([control, "-d"], env=environment, capture_output=True).returncode:
        shutil.rmtree(folder, ignore_errors=True)
        return False
    os.environ.update({variable: folder, "CUDA_MPS_LOG_DIRECTORY": folder})
    atexit.register(_end_mps, control, folder)
    return True


def _end_mps(control: str, folder: str) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run([control], input="quit\n", text=True, capture_output=True, timeout=20)
    shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    """Where this user's jobs on this machine have their locks."""
    folder = Path(tempfile.gettempdir(), f"clpapers-cards-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(0, "belongs to another user; set TMPDIR to a folder of your own", str(folder))
    return folder


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Only one job at a time looks for a card, so that one that needs much is not passed by those that need little."""
    with (folder / "turn").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


def _taken_megabytes(folder: Path) -> dict[str, int]:
    """Megabytes of each card that living jobs have taken; the files of dead ones are removed."""
    megabytes_of: dict[str, int] = {}
    for path in folder.glob("GPU-*"):
        uuid, megabytes, _ = path.name.split(".")
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                megabytes_of[uuid] = megabytes_of.get(uuid, 0) + int(megabytes)
    return megabytes_of


def _best_share(cards: list[Card], by_card: dict[str, int], megabytes: int) -> Share | None:
    """A share of the card that has the most room, other programs reckoned with; None where jobs have taken too much."""
    shares = [Share(card, min(megabytes or card.memory, card.memory)) for card in cards]
    room = {card.uuid: card.memory - by_card.get(card.uuid, 0) for card in cards}
    fitting = [share for share in shares if share.memory <= room[share.card.uuid]]
    return max(fitting, key=lambda share: min(room[share.card.uuid], share.card.free), default=None)


def resolve_device(device: str) -> str:
    """`auto` → `cuda` where there is one. Asks no torch, for the Snakefile's sake."""
    return ("cuda" if Path("/dev/nvidia0").exists() else "cpu") if device == "auto" else device
