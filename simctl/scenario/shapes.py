"""What a value may look like: read with every mistake noted, and told as JSON Schema.

A shape is declared once and used twice, by the reader and by the schema, so that the two agree.
`read` returns the value, or notes what is wrong and raises `Unreadable`; lists and tables leave out
what they cannot read and go on, so that one mistake does not hide the next.
"""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import attrs
import yaml

from simctl.kernel.pattern import near
from simctl.scenario.positions import Reading, Unreadable, Value, pairs

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Schema = dict[str, Any]
_TAGS: Final = {
    yaml.ScalarNode: "tag:yaml.org,2002:str",
    yaml.SequenceNode: "tag:yaml.org,2002:seq",
    yaml.MappingNode: "tag:yaml.org,2002:map",
}


class Shape(Protocol[T_co]):
    """Something a value may look like."""

    def read(self, value: Value, reading: Reading) -> T_co:
        """Return what *value* says; note mistakes and raise `Unreadable` if there is nothing."""

    def schema(self) -> Schema:
        """Return the JSON Schema of the values this accepts."""


def check_tag(value: Value, reading: Reading) -> None:
    """Refuse `!tag`: what a value is follows from the place where it stands."""
    if value.node.tag != _TAGS.get(type(value.node)):
        raise reading.refuse(value, f"the tag {value.node.tag} means nothing here; leave it out")


@attrs.frozen(kw_only=True)
class Scalar(Generic[T]):
    """A single word, number or text; *convert* gets it with its place and raises ValueError.

    An empty message of that error stands for `expected X, got Y`.
    """

    expected: str
    convert: Callable[[Value, Reading], T]
    json: Schema

    def read(self, value: Value, reading: Reading) -> T:
        """Return the converted text."""
        check_tag(value, reading)
        wrong = f"expected {self.expected}, got {value.shown()}"
        if not isinstance(value.node, yaml.ScalarNode) or value.nothing:
            raise reading.refuse(value, wrong)
        try:
            return self.convert(value, reading)
        except ValueError as error:
            raise reading.refuse(value, str(error) or wrong) from error

    def schema(self) -> Schema:
        """Return the schema given with the shape."""
        return dict(self.json)


@attrs.frozen(kw_only=True)
class Items(Generic[T]):
    """A list, each item of one shape; where *single* is set, one item may stand without a list."""

    item: Shape[T]
    expected: str = "a list"
    single: bool = False
    least: int = 0

    def read(self, value: Value, reading: Reading) -> tuple[T, ...]:
        """Return the items that could be read."""
        if self.single and not isinstance(value.node, yaml.SequenceNode):
            return (self.item.read(value, reading),)
        if not isinstance(value.node, yaml.SequenceNode) and not value.nothing:
            raise reading.refuse(value, f"expected {self.expected}, got {value.shown()}")
        check_tag(value, reading)
        if len(value.items()) < self.least:
            reading.mistake(value, f"expected {self.expected} of at least {self.least}")
        found = []
        for item in value.items():
            try:
                found.append(self.item.read(item, reading))
            except Unreadable:
                continue
        return tuple(found)

    def schema(self) -> Schema:
        """Return an array of the item's schema, or either."""
        array: Schema = {"type": "array", "items": self.item.schema()}
        if self.least:
            array["minItems"] = self.least
        return {"anyOf": [self.item.schema(), array]} if self.single else array


@attrs.frozen(kw_only=True)
class Table(Generic[T]):
    """A mapping from names to values of one shape; *check_key* raises ValueError on a bad name."""

    item: Shape[T]
    expected: str
    check_key: Callable[[str], object] = str

    def read(self, value: Value, reading: Reading) -> dict[str, T]:
        """Return the entries that could be read."""
        if value.nothing:
            return {}
        check_mapping(value, reading, self.expected)
        found: dict[str, T] = {}
        for place, key, child in pairs(value, reading):
            try:
                item = self.item.read(child, reading)
                self.check_key(key)
            except Unreadable:
                continue
            except ValueError as error:
                reading.mistake(place, str(error))
            else:
                found[key] = item
        return found

    def schema(self) -> Schema:
        """Return an object with any keys."""
        return {"type": "object", "additionalProperties": self.item.schema()}


@attrs.frozen(kw_only=True)
class Field:
    """One key of a mapping: what it holds, what it means when left out, and why it is there."""

    name: str
    shape: Shape[Any]
    doc: str
    required: bool = False
    unless: str = ""
    """Another key which, where it is given, may say what a required one would."""
    default: Any = None
    """What a missing key gives; as it is written in the file, *shown*, where people read it."""
    shown: object = ""


class Values(dict[str, Any]):
    """What the keys of a mapping said; a key that was left out holds its default.

    Attributes:
        places: where the keys that are there stand.
        whole: where the mapping stands.
    """

    def __init__(self, whole: Value, places: Mapping[str, Value]) -> None:
        super().__init__()
        self.places = places
        self.whole = whole

    def place(self, key: str) -> Value:
        """Return where *key* has its value, or the mapping where it was left out."""
        return self.places.get(key, self.whole)


@attrs.frozen(kw_only=True)
class Record(Generic[T]):
    """A mapping with known keys; *build* makes the value from them and may note mistakes.

    *check* looks at the keys first, also where some of them could not be read and *build* is not
    called; those hold their default.
    """

    what: str
    fields: tuple[Field, ...]
    build: Callable[[Values, Value, Reading], T]
    check: Callable[[Values, Reading], object] = lambda _values, _reading: None
    not_built: Mapping[str, str] = attrs.field(factory=dict)
    """Keys that are known and refused, with what would do instead."""

    def read(self, value: Value, reading: Reading) -> T:
        """Return what *build* makes; Unreadable if a key is missing or says nothing."""
        values, complete = self.read_values(value, reading)
        found = len(reading.mistakes)
        self.check(values, reading)
        if not complete or len(reading.mistakes) > found:
            raise Unreadable(self.what)
        return self.build(values, value, reading)

    def read_values(self, value: Value, reading: Reading) -> tuple[Values, bool]:
        """Return what the keys say, and whether all of them could be read."""
        check_mapping(value, reading, self.what)
        children = self._children(value, reading)
        values = Values(value, children)
        complete = True
        for field in self.fields:
            values[field.name] = field.default
            if field.name not in children:
                if field.required and field.unless not in children:
                    reading.mistake(value, f"missing key `{field.name}`: {field.doc}")
                    complete = False
                continue
            try:
                values[field.name] = field.shape.read(children[field.name], reading)
            except Unreadable:
                complete = False
        return values, complete

    def _children(self, value: Value, reading: Reading) -> dict[str, Value]:
        known = [field.name for field in self.fields]
        children: dict[str, Value] = {}
        before = ""
        for place, key, child in pairs(value, reading):
            if key in known:
                children[key] = child
            elif key in self.not_built:
                reading.mistake(place, f"`{key}` is {self.not_built[key]}")
            else:
                hint = near(key, [*known, *self.not_built]) or _choices(known)
                if child.nothing and before in known:
                    # Inside braces a comma ends a text that is not in quotes.
                    hint = f"; if it is more of `{before}`, which a comma ended, quote that text"
                reading.mistake(place, f"{self.what} has no key `{key}`{hint}")
            before = key if not child.nothing else before
        return children

    def schema(self) -> Schema:
        """Return an object with these keys and no others."""
        schema: Schema = {
            "type": "object",
            "properties": {field.name: field_schema(field) for field in self.fields},
            "additionalProperties": False,
        }
        required = [field for field in self.fields if field.required]
        if always := [field.name for field in required if not field.unless]:
            schema["required"] = always
        others = {field.unless for field in required if field.unless}
        if others:
            names = [field.name for field in required if field.unless]
            instead = [{"required": [one]} for one in sorted(others)]
            schema["anyOf"] = [{"required": names}, *instead]
        return schema


@attrs.frozen(kw_only=True)
class Forms(Generic[T]):
    """A mapping in one of several forms, told apart by the key that is present."""

    what: str
    forms: Mapping[str, Shape[T]]
    not_built: Mapping[str, str] = attrs.field(factory=dict)

    def read(self, value: Value, reading: Reading) -> T:
        """Return what the form that is there says."""
        names = ", ".join(f"`{name}`" for name in self.forms)
        check_mapping(value, reading, f"{self.what} ({names})")
        keys = [node.value for node, _ in value.node.value if isinstance(node, yaml.ScalarNode)]
        present = [key for key in keys if key in self.forms]
        if len(present) == 1:
            return self.forms[present[0]].read(value, reading)
        if present:
            both = " and ".join(f"`{key}`" for key in present)
            raise reading.refuse(value, f"{both} together: {self.what} has one form, so write two")
        for key in keys:
            if key in self.not_built:
                raise reading.refuse(value, f"`{key}` is {self.not_built[key]}")
        hint = next(
            (near(key, [*self.forms, *self.not_built]) for key in keys if self._resembles(key)), ""
        )
        raise reading.refuse(value, f"{self.what} has one of the keys {names}{hint}")

    def _resembles(self, key: str) -> bool:
        return bool(difflib.get_close_matches(key, [*self.forms, *self.not_built], n=1))

    def schema(self) -> Schema:
        """Return a choice of the forms."""
        return {"oneOf": [form.schema() for form in self.forms.values()]}


@attrs.frozen(kw_only=True)
class Either(Generic[T]):
    """A value whose shape follows from what YAML it is: a scalar, a list or a mapping."""

    expected: str
    scalar: Shape[T] | None = None
    sequence: Shape[T] | None = None
    mapping: Shape[T] | None = None
    empty: Shape[T] | None = None

    def read(self, value: Value, reading: Reading) -> T:
        """Return what the shape for this kind of value says."""
        if isinstance(value.node, yaml.SequenceNode):
            shape = self.sequence
        elif isinstance(value.node, yaml.MappingNode):
            shape = self.mapping
        else:
            shape = self.empty if value.nothing and self.empty is not None else self.scalar
        if shape is None:
            raise reading.refuse(value, f"expected {self.expected}, got {value.shown()}")
        return shape.read(value, reading)

    def schema(self) -> Schema:
        """Return a choice of the shapes."""
        shapes = [self.scalar, self.sequence, self.mapping, self.empty]
        return {"anyOf": [shape.schema() for shape in shapes if shape is not None]}


@attrs.frozen(kw_only=True)
class Built(Generic[T]):
    """A shape whose value is made into something else, with the place at hand."""

    shape: Shape[Any]
    build: Callable[[Any, Value, Reading], T]

    def read(self, value: Value, reading: Reading) -> T:
        """Return what *build* makes of the value of the inner shape."""
        return self.build(self.shape.read(value, reading), value, reading)

    def schema(self) -> Schema:
        """Return the schema of the inner shape."""
        return self.shape.schema()


@attrs.frozen(kw_only=True)
class Nothing(Generic[T]):
    """A key with nothing behind it, which stands for *value*."""

    value: T

    def read(self, value: Value, reading: Reading) -> T:
        """Return the value it stands for."""
        return self.value

    def schema(self) -> Schema:
        """Return null."""
        return {"type": "null"}


def check_mapping(value: Value, reading: Reading, what: str) -> None:
    """Raise Unreadable unless *value* is a mapping without a tag of its own."""
    if not isinstance(value.node, yaml.MappingNode):
        raise reading.refuse(value, f"expected {what} as a mapping, got {value.shown()}")
    check_tag(value, reading)


def field_schema(field: Field) -> Schema:
    """Return the schema of a key with its description and its default, as it would be written."""
    schema = {**field.shape.schema(), "description": field.doc}
    return {**schema, "default": field.shown} if field.shown else schema


def _choices(names: list[str]) -> str:
    return f"; its keys are {', '.join(names)}"
