"""Texts of small case files."""


def box(n: str, upper: str, time: str, *others: str, lower: str = "[0.0, 0.0, 0.0]", head: str = "") -> str:
    """A box of `n` nodes up to `upper`, with these lines of [time], `others` behind and `head` ahead."""
    grid = f'[grid]\ngenerator = "box"\nn = {n}\nlower = {lower}\nupper = {upper}\n'
    return "\n".join([head, f"{grid}[time]\n{time}", *others]).lstrip() + "\n"


def boundary(type: str, faces: str = '"all"', *more: str) -> str:
    """One condition; `more`: lines with its other keys."""
    return "\n".join(["[[boundary]]", f"faces = {faces}", f'type = "{type}"', *more])
