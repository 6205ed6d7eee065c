"""Conversion of pydantic's list of errors to one HiresxError, which names every error by file and dotted key."""

import difflib
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Tag, ValidationError

from hiresx.errors import HiresxError


def closest(word: str, among: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the text in `among` whose spelling is most similar to `word`. Return None if the similarity (the ratio of
    difflib, from 0 to 1) of all of them is below `cutoff`."""
    folded = {name.lower().replace("_", "-"): name for name in among}
    near = difflib.get_close_matches(str(word).lower().replace("_", "-"), folded, n=1, cutoff=cutoff)
    return folded[near[0]] if near else None


def did_you_mean(word: str, among: Sequence[str], kind: str = "choices") -> str:
    """Return a hint for the misspelt name `word`: it names the most similar of the valid names `among`, or lists all of
    them if none is similar. `kind`: the noun for the valid names, in the plural, such as "presets"."""
    near = closest(word, among)
    if near:
        return f'did you mean "{near}"?'
    return f"{kind}: {', '.join(among)}" if among else f"there are no {kind}"


@dataclass(frozen=True)
class Origin:
    """The origin of the keys of a case: its file, and the layers above it (the preset and `--set`). `layers` contains
    (label, nested dictionary) pairs, the uppermost first."""

    file: str
    layers: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def label(self, path: Sequence[str | int]) -> str:
        """Return the label of the layer (a preset or an override) that set the key at `path`, a sequence of keys and
        list indexes. Return "" for a key of the case file itself."""
        for label, layer in self.layers:
            if _holds(layer, path):
                return label
        return ""


def _holds(layer: Any, path: Sequence[str | int]) -> bool:
    for key in path:
        if isinstance(layer, Mapping):
            # with --set boundary.0.type=..., a table takes the place of the list
            key = key if key in layer else str(key)
            if key not in layer:
                return False
            layer = layer[key]
        else:
            # Lists are replaced as a whole: the layer that wrote the list wrote all its entries.
            return True
    return True


def describe_validation_error(error: ValidationError, model: type[BaseModel], origin: Origin) -> HiresxError:
    """Return one HiresxError that lists all errors of the pydantic exception `error`, each with its dotted key.
    `model`: the class of the tables that were validated. `origin`: the file and the layers above it, which tell where
    each key was set."""
    faults: dict[tuple[str | int, ...], list[tuple[str, str]]] = {}
    wanted: dict[tuple[str | int, ...], str] = {}
    items = [(item, *_walk(model, item["loc"])) for item in error.errors(include_url=False)]
    unknown = [path for item, path, _ in items if item["loc"] and item["loc"][-1] == "[key]"]
    for item, path, level in items:
        if item["loc"] and item["loc"][-1] != "[key]" and any(path[: len(key)] == key for key in unknown):
            continue  # for a key that does not exist the type of the value is not shown
        if item["type"] == "missing" and path and isinstance(path[-1], int):
            # for a list that is too short, the error belongs to the list; the last entry of the path is the length
            path = path[:-1]
            faults.pop(path, None)
        faults.setdefault(path, []).append(_describe(item, path, level, model))
        # for a key in a dictionary, the description of the dictionary is used
        location = item["loc"][:-2] if path in unknown else item["loc"]
        wanted.setdefault(path, "" if item["type"] == "case" else _meaning(model, location))
    lines, hints, meanings = [], [], []
    for path, found in faults.items():
        if any(other[: len(path)] == path and len(other) > len(path) for other in faults):
            # an error of another branch of a union: the user probably chose the branch whose errors are deepest
            continue
        label = origin.label(path or _leading_key(found[0][0]))
        texts = list(dict.fromkeys(text for text, _ in found))
        # an error of the whole case has no key
        line = f"{dotted_key(path)}{_join_messages(texts)}".removeprefix(": ")
        lines.append(f"{label} {line}" if label else line)
        about = [wanted[path]] if path in unknown and wanted[path] else []
        hints.append("; ".join(dict.fromkeys([*(hint for _, hint in found if hint), *about])))
        meanings.append(wanted[path])
    if len(lines) == 1:
        return HiresxError(f"{origin.file}: {lines[0]}", hints[0] or meanings[0])
    listed = "".join(f"\n  {line}{f' ({hint})' if hint else ''}" for line, hint in zip(lines, hints, strict=True))
    return HiresxError(f"{origin.file}: {len(lines)} errors{listed}", "correct these keys")


def _meaning(model: type[BaseModel], location: Sequence[str | int]) -> str:
    """Return the schema's description of the key at pydantic's `location`: its meaning, its range and its default."""
    last = max((n for n, step in enumerate(location) if isinstance(step, str)), default=-1)
    path, level = _walk(model, location[: last + 1])
    field = level.model_fields.get(path[-1]) if path and _is_model(level) else None
    if field is None:
        return ""
    bounds = {name: getattr(extra, name) for extra in field.metadata for name in _BOUNDS if hasattr(extra, name)}
    parts = [f"{path[-1]}: {field.description}"] if field.description else []
    if len(bounds) > 1:
        parts.append(" and ".join(f"{_BOUNDS[name]} {bound:g}" for name, bound in sorted(bounds.items())))
    if isinstance(field.default, bool | int | float | str):
        parts.append(f"the default is {format_value(field.default)}")
    return "; ".join(parts)


def _leading_key(text: str) -> tuple[str | int, ...]:
    """Return the key with which the sentence of an error begins. For an error without a key the result is one that no
    table has."""
    found = re.match(r": ([a-z_]+(?:\.\w+)*)", text)
    return tuple(int(part) if part.isdigit() else part for part in found[1].split(".")) if found else ("",)


def dotted_key(path: Sequence[str | int]) -> str:
    """Return the key at `path`, a sequence of keys and list indexes, in the form that messages use, for example
    "boundary.0.type"."""
    return ".".join(map(str, path))


def _join_messages(texts: Sequence[str]) -> str:
    """Return the errors of one key as one sentence. The branches of a union say " = value: must be A", "... must be
    B"."""
    head, *others = texts
    return head + "".join(f" or {text.split('must be ', 1)[-1]}" for text in others)


def format_value(value: Any) -> str:
    """Return `value` as it is written in a case file. If the text has more than 60 characters, its middle is replaced
    by "..."."""
    from hiresx.case.toml import value_text

    text = value_text(value)
    # The end of a path is its most informative part.
    return text if len(text) <= 60 else f"{text[:28]}...{text[-29:]}"


_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
_WANTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text",
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


def _describe(item: Any, path: Sequence[str | int], level: Any, model: type[BaseModel]) -> tuple[str, str]:
    """Return (the text behind the key, the hint) for one of pydantic's errors."""
    kind, value, context = item["type"], item["input"], item.get("ctx", {})
    key = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        return f" = {format_value(value)}: unknown key", _key_hint(key, path, level, model)
    if kind == "missing":
        if isinstance(item["loc"][-1], int):
            return f" = {format_value(value)}: must have at least {item['loc'][-1] + 1} entries", ""
        description = level.model_fields[key].description if _is_model(level) and key in level.model_fields else ""
        return ": missing", f"give it: {description}" if description else "give it"
    if kind == "case":
        return f": {context['expected']}", ""
    if kind == "choice":
        choices = f"choices: {', '.join(context['choices'])}"
        near = closest(value, context["choices"])
        return f" = {format_value(value)}: not available", f'did you mean "{near}"? {choices}' if near else choices
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        names = re.findall(r"'([^']*)'", context.get("expected_tags", "")) or list(_tags(level))
        names = [name for name in names if " " not in name]
        tag_key = next((tag[0] for member in _members(level) if (tag := _tag_of(member)) and tag[0]), "type")
        tag = value.get(tag_key) if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping):
            return f" = {format_value(value)}: must be a table", f"with the key {tag_key}: {', '.join(names)}"
        if tag is None:
            return f".{tag_key}: missing", f"one of: {', '.join(names)}"
        return f".{tag_key} = {format_value(tag)}: unknown {tag_key}", did_you_mean(tag, names, "choices")
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        if item["loc"][-1] == "[key]":
            return ": unknown key", did_you_mean(value, names, "choices")
        near = closest(value, names) if isinstance(value, str) else None
        return f" = {format_value(value)}: must be {context['expected']}", f'did you mean "{near}"?' if near else ""
    if kind in ("list_type", "tuple_type") and isinstance(value, str):
        return f" = {format_value(value)}: must be a list", f"write [{format_value(value)}]"
    if kind == "string_pattern_mismatch":
        shown = "" if item["loc"][-1] == "[key]" else f" = {format_value(value)}"
        return f"{shown}: not a name", _rule(context["pattern"])
    wanted = _WANTED.get(kind)
    if wanted is None:
        wanted = item["msg"].replace("Input should be ", "").replace("Tuple should have", "a list with")
        wanted = wanted.replace("Value should have", "a list with")
        wanted = wanted.replace(" after validation", "")
        bound = next((context[name] for name in _BOUNDS if isinstance(context.get(name), float)), 0.0)
        if 0 < abs(bound) < 1e-4:  # pydantic writes all zeros
            wanted = f"{wanted.rpartition(' ')[0]} {bound:g}"
    return f" = {format_value(value)}: must be {wanted}", ""


def _rule(pattern: str) -> str:
    """Describe the strings that a pattern of names, [first][others]{0,99}, allows."""
    found = re.fullmatch(r"\^\[(.*?)\]\[(.*?)\]\{0,(\d+)\}\$", pattern)
    if found is None:
        return ""
    first, others, more = found.groups()
    signs = ["letters", "digits", *(["hyphens"] if others.endswith("-") else []), *(["underscores"] * ("_" in others))]
    begin = "beginning with a letter" + (" or an underscore" if "_" in first else "")
    return f"{', '.join(signs[:-1])} and {signs[-1]}, {begin}, {int(more) + 1} at most"


def _key_hint(key: str, path: Sequence[str | int], level: Any, model: type[BaseModel]) -> str:
    here = list(level.model_fields) if _is_model(level) else []
    # A first word alone, such as `every`, may stand for each of the keys that begin with it, since their units differ.
    begun = [name for name in here if name.startswith(f"{key}_")]
    near = closest(key, here)
    if len(begun) > 1:
        return f"did you mean {' or '.join(begun)}?"
    if near:
        return f'did you mean "{near}"?'
    table = dotted_key([part for part in path[:-1] if isinstance(part, str)])
    others = [kind for place, kind in _models(model, "") if place == table]
    meant = closest(key, list(dict.fromkeys(name for kind in others for name in kind.model_fields))) or key
    kinds = [_tag_of(kind) for kind in others if meant in kind.model_fields]
    if kinds and None not in kinds:
        owners = " or ".join(dict.fromkeys(f'{tag} = "{name}"' for tag, name in filter(None, kinds)))
        return f"only {owners} has {'it' if meant == key else meant}; here there are {', '.join(here)}"
    everywhere = _all_keys(model)
    elsewhere = everywhere.get(key) or everywhere.get(closest(key, list(everywhere), 0.8) or "")
    if elsewhere:
        top = [f"{place}, which belongs to no table" if "." not in place else place for place in elsewhere[:3]]
        return f"did you mean {' or '.join(top)}?"
    return f"keys of {dotted_key(path[:-1]) or 'a case'}: {', '.join(here)}"


# --- Types of the model along the paths of pydantic's errors, which mix keys with the tags of unions.


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _bare(kind: Any) -> Any:
    while typing.get_origin(kind) is Annotated:
        kind = typing.get_args(kind)[0]
    return kind


def _members(kind: Any) -> list[Any]:
    """Return the members of a union; a single type is a union of one member."""
    kind = _bare(kind)
    if typing.get_origin(kind) in (Union, types.UnionType):
        return [member for part in typing.get_args(kind) for member in _tagged_members(part)]
    return [kind]


def _tagged_members(part: Any) -> list[Any]:
    # A member with a Tag stays Annotated, since the tag is read from it.
    if typing.get_origin(part) is Annotated and any(isinstance(extra, Tag) for extra in part.__metadata__):
        return [part]
    return _members(part)


def _tag_of(member: Any) -> tuple[str, str] | None:
    """Return (key, value) that selects a member of a discriminated union."""
    model = _bare(member)
    if not _is_model(model):
        return None
    for name, field in model.model_fields.items():
        if typing.get_origin(field.annotation) is Literal and typing.get_args(field.annotation) == (field.default,):
            return name, field.default
    tags = [extra.tag for extra in getattr(member, "__metadata__", ()) if isinstance(extra, Tag)]
    return ("", tags[0]) if tags else None


def _tags(kind: Any) -> dict[str, Any]:
    """Return a dictionary from each tag to the model, for a discriminated union."""
    return {tag[1]: _bare(member) for member in _members(kind) if (tag := _tag_of(member))}


def _walk(model: Any, location: Sequence[str | int]) -> tuple[tuple[str | int, ...], Any]:
    """Return the keys in pydantic's `location` without its union tags, and the type of the table that contains the last
    key."""
    path: list[str | int] = []
    holder, kind, branch = None, model, None
    for step in location:
        tags = _tags(kind)
        if step == "[key]":
            continue
        if step in tags:
            holder = kind = tags[step]
            continue
        if branch is not kind and len([member for member in _members(kind) if member is not types.NoneType]) > 1:
            branch = kind  # this step names a branch of a union without tags, the next one is a key in it
            continue
        models = [member for member in map(_bare, _members(kind)) if _is_model(member)] if kind is not None else []
        container = _container(kind, isinstance(step, int))
        if models:
            holder = models[0]
            path.append(step)
            kind = holder.model_fields[step].annotation if step in holder.model_fields else None
        elif container is not None:
            path.append(step)
            holder, kind = kind, container
        elif isinstance(step, int):
            path.append(step)
            kind = None
    if kind is not None and len(_tags(kind)) > 1:
        holder = kind  # the tag itself is invalid
    return tuple(path), holder


def _container(kind: Any, indexed: bool) -> Any:
    """Return the type of the entries of a tuple (`indexed`) or of the values of a dictionary; None if `kind` is
    neither."""
    for member in map(_bare, _members(kind)) if kind is not None else ():
        arguments = typing.get_args(member)
        if indexed and typing.get_origin(member) is tuple:
            return arguments[0]
        if not indexed and typing.get_origin(member) is dict:
            return arguments[1]
    return None


def _models(kind: Any, path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield (dotted path, table) for every table below `kind`."""
    for member in map(_bare, _members(kind)):
        if _is_model(member):
            yield path, member
            for name, field in member.model_fields.items():
                yield from _models(field.annotation, f"{path}.{name}" if path else name)
        elif typing.get_origin(member) in (tuple, dict):
            yield from (found for argument in typing.get_args(member) for found in _models(argument, path))


def _all_keys(model: type[BaseModel]) -> dict[str, list[str]]:
    """Return a dictionary from each key to the dotted paths at which a case may have it."""
    places: dict[str, list[str]] = {}
    for path, table in _models(model, ""):
        for name in table.model_fields:
            place = f"{path}.{name}" if path else name
            if place not in places.setdefault(name, []):
                places[name].append(place)
    return places
