"""Numbers of things in messages."""


def plural(number: int, noun: str, form: str = "") -> str:
    """ "1 rank", "3 ranks", "2 processes": the number by `form` (see `format`), and the noun, with its ending unless
    the number is one."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{number:{form}} {noun}{'' if number == 1 else ending}"
