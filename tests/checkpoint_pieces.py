"""Arrays cut into pieces that several ranks write."""

import random


def cut(size: tuple[int, int, int], parts: int, dice: random.Random) -> list:
    """About `parts` boxes that make up a block, cut at random places."""
    boxes = [tuple((0, n) for n in size)]
    for _ in range(parts - 1):
        box = boxes.pop(dice.randrange(len(boxes)))
        d = dice.randrange(3)
        first, last = box[d]
        if last - first > 1:
            at = dice.randrange(first + 1, last)
            boxes += [(*box[:d], ends, *box[d + 1 :]) for ends in ((first, at), (at, last))]
        else:
            boxes.append(box)
    return boxes


def inside(size: tuple[int, int, int], dice: random.Random):
    ends = [sorted(dice.sample(range(n + 1), 2)) for n in size]
    return tuple((first, last) for first, last in ends)
