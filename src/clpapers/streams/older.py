"""Published runs' stream files of which today's code draws another order."""

from pathlib import Path

# Until commit da0c8bdc a sort left items of equal time in an order that depended on the processor. All these items are
# of one class, or two, so that the classes come in today's order. The other older files of published runs differ from
# today's in the last digits of their times alone. docs/findings/older_streams.py draws both kinds again.
OTHER_ITEMS = {  # SHA-256 of a file → at how many of its 50,000 positions it has another item than today's
    "98dc0a2566f6aa79cf73dd5939189f2075b13c7d51cb157a7ab84300e3c149fa": 155,  # cifar10/stf-0.057735/seed0
    "1d3c1f5f001f8fdca3c3528adf98a81d7cbf57a7a17cb8ddcf2e6c92a452394f": 3997,  # cifar10/stf-0.057735/seed2
    "6ad7d768e35bb06198be62d865416d0f05db962d4814b01e705b619f5f45e16f": 485,  # cifar100/stf-0.0288675/seed0
    "55f2ce62eaf34111797099070774e5c437150a04d7d09376244d4fd06a320409": 490,  # cifar100/stf-0.0288675/seed0
    "85a856e0ee9bbde73577e681d01e2a79c7e3a1c8702411c1f51f513110edbe92": 543,  # cifar100/stf-0.0288675/seed1
}

AS_DRAWN_NOW = "as drawn now"


def streams_learnt(record: dict) -> dict[int, str]:
    """By seed, the first digits of the SHA-256 of the stream file that a run learnt, where `OTHER_ITEMS` has it.

    Two runs with the same data set, order and seed learnt the same items at all positions if theirs are equal, or if
    neither has one. record: of the runs.
    """
    files = {Path(item["path"]).stem: item["sha256"] for item in record["inputs"] if item.get("sha256") in OTHER_ITEMS}
    return {int(seed.removeprefix("seed")): digest[:10] for seed, digest in files.items()}
