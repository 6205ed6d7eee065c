"""Numbers of things in messages."""


def plural(number: int, noun: str, form: str = "") -> str:
    """Return "1 rank", "3 ranks" or "2 processes": the number, written by the format `form`, and the noun, in the
    plural unless the number is one."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{number:{form}} {noun}{'' if number == 1 else ending}"
