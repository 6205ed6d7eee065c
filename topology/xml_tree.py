"""XML as a tree of elements. Depth and number of elements are limited, and declarations of entities are refused, since
these can make XML dangerous and no recording needs them."""

from collections.abc import Iterator
from typing import NoReturn
from xml.parsers import expat

from hiresx.errors import HiresxError
from hiresx.topology.machine import printable

# A node of 1024 CPUs has some 10,000 objects with some 100,000 attributes.
MOST_ELEMENTS = 1_000_000
DEEPEST = 128


class Element:
    """An element of an XML document. `tag`: its name. `attributes`: its attributes. `children`: its child elements.
    `parent`: the parent element, or None. `text`: the text directly in it."""

    __slots__ = ("attributes", "children", "parent", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], parent: "Element | None"):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Element] = []
        self.text = ""

    def get(self, key: str) -> str:
        """Return the value of the attribute `key`; "" if the element has no such attribute."""
        return self.attributes.get(key, "")

    def inside(self, tag: str) -> list["Element"]:
        """Return the child elements with the tag `tag`."""
        return [child for child in self.children if child.tag == tag]

    def ancestors(self) -> Iterator["Element"]:
        """Yield the ancestors of this element, the parent first."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def walk(self, tag: str | None = None) -> Iterator["Element"]:
        """Yield this element and all elements nested in it, in the order of the document. If `tag` is given, only
        elements with this tag are yielded."""
        stack = [self]
        while stack:
            element = stack.pop()
            if tag is None or element.tag == tag:
                yield element
            stack.extend(reversed(element.children))


def read(text: str, name: str, hint: str) -> Element:
    """Return the root element of the XML document `text`. `name`: the name of the file in error messages. `hint`: the
    advice in error messages. Raises HiresxError for text that is not XML, is truncated, or declares entities."""
    reader = _Reader(name, hint)
    try:
        reader.parser.Parse(text.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as error:
        raise HiresxError(f"{name}: not XML, or cut off: {error}", hint) from None
    assert reader.root is not None  # expat rejects a text without one
    return reader.root


class _Reader:
    """Handles the events of expat."""

    def __init__(self, name: str, hint: str):
        self.name, self.hint = name, hint
        self.root: Element | None = None
        self.current: Element | None = None
        self.elements = self.depth = 0
        self.parser = expat.ParserCreate("utf-8")  # as the text was decoded, whatever encoding it declares
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.refuse
        self.parser.UnparsedEntityDeclHandler = self.refuse
        self.parser.ExternalEntityRefHandler = self.refuse

    def refuse(self, *_: object) -> NoReturn:
        raise HiresxError(f"{self.name}: XML that declares entities is refused: no recording has any", self.hint)

    def doctype(self, _name: str, _system: str | None, _public: str | None, internal: bool) -> None:
        if internal:
            self.refuse()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        self.depth += 1
        if self.elements > MOST_ELEMENTS or self.depth > DEEPEST:
            raise HiresxError(f"{self.name}: more elements, or deeper, than the XML of a machine", self.hint)
        # The text of a file may later be shown on a terminal.
        clean = {key: printable(value) for key, value in attributes.items()}
        element = Element(tag, clean, self.current)
        if self.current is None:
            self.root = element
        else:
            self.current.children.append(element)
        self.current = element

    def end(self, tag: str) -> None:
        self.depth -= 1
        if self.current is not None:
            self.current = self.current.parent

    def data(self, text: str) -> None:
        if self.current is not None:
            self.current.text += text
