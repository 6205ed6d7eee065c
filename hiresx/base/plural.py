"""Numbers with nouns in messages, singular or plural."""


def plural(number: int, noun: str, form: str = "") -> str:
    """Return a number and a noun, such as "1 rank", "3 ranks" or "2 processes". The noun is in the plural unless the
    number is one. `noun`: the singular. `form`: Python's format specification of the number, such as ","."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{number:{form}} {noun}{'' if number == 1 else ending}"
