"""The variables of a shell: values and arrays, their attributes, and the scopes of functions."""

from __future__ import annotations

from functools import lru_cache

import attrs

from simctl.limits import VALUE_CHARACTERS

Key = int | str
"""What an element of an array is called: a number, or a text in an array by name."""

Elements = dict[Key, str]
"""The elements of an array, in the order in which their keys were set."""

Value = str | Elements


_FIRST_HASH = 2166136261
_HASH_PRIME = 16777619
_BUCKETS = 1024


@lru_cache(maxsize=4096)
def _hash(key: str) -> int:
    """Return the hash of a key, by Fowler, Noll and Vo, in 32 bits."""
    value = _FIRST_HASH
    for byte in key.encode(errors="surrogateescape"):
        value = (value * _HASH_PRIME & 0xFFFFFFFF) ^ byte
    return value


def in_order(values: Elements) -> Elements:
    """Return the elements of an array by name in the order in which bash tells them.

    That is the order of its hash table; of two keys in one bucket the later comes first.
    """
    buckets = _BUCKETS
    while len(values) >= 2 * buckets:
        buckets *= 4
    latest_first = list(values)[::-1]
    keys = sorted(latest_first, key=lambda key: _hash(str(key)) % buckets)
    return {key: values[key] for key in keys}


class ReadonlyError(Exception):
    """Say that a variable may not be changed."""


class TooLongError(Exception):
    """Say that a value would be longer than a variable can hold."""


@attrs.define(kw_only=True)
class Variable:
    """One variable: *value* is None while it is declared alone."""

    value: Value | None = None
    exported: bool = False
    readonly: bool = False
    integer: bool = False
    case: str = ""  # "l" or "u": what it is assigned becomes lower or upper case
    keyed: bool = False  # an array by name
    indexed: bool = False  # declared to be an array by number

    @property
    def text(self) -> str | None:
        """The value of the name alone: of an array its element 0."""
        if isinstance(self.value, dict):
            return self.value.get("0" if self.keyed else 0)
        return self.value

    def copy(self) -> Variable:
        """Return one of its own."""
        value = dict(self.value) if isinstance(self.value, dict) else self.value
        return attrs.evolve(self, value=value)


@attrs.define
class Scope:
    """The variables of a function, or those before a command (*passing*)."""

    passing: bool = False
    variables: dict[str, Variable] = attrs.field(factory=dict)


@attrs.define
class Variables:
    """All variables that a shell knows: its own, and those of the functions under way."""

    scopes: list[Scope] = attrs.field(factory=lambda: [Scope()])

    @classmethod
    def of(cls, env: dict[str, str]) -> Variables:
        """Return those of an environment, all exported."""
        variables = cls()
        for name, text in env.items():
            variables.scopes[0].variables[name] = Variable(value=text, exported=True)
        return variables

    def copy(self) -> Variables:
        """Return what a shell that is forked starts with."""
        return Variables(
            [
                Scope(scope.passing, {name: each.copy() for name, each in scope.variables.items()})
                for scope in self.scopes
            ]
        )

    def find(self, name: str) -> Variable | None:
        """Return the variable that *name* means here."""
        for scope in reversed(self.scopes):
            if name in scope.variables:
                return scope.variables[name]
        return None

    def make(self, name: str) -> Variable:
        """Return the variable that *name* means here, made for the whole script if new."""
        found = self.find(name)
        if found is None:
            found = self.scopes[0].variables[name] = Variable()
        return found

    def make_local(self, name: str) -> Variable:
        """Return the variable of the innermost function, made if it is new.

        Raises:
            ReadonlyError: One of the whole script has the name and may not change.
        """
        scope = self._innermost
        if name not in scope.variables:
            outer = self.find(name)
            if outer is not None and outer.readonly and outer is self.scopes[0].variables.get(name):
                raise ReadonlyError(f"{name}: readonly variable")
            scope.variables[name] = Variable(exported=outer is not None and outer.exported)
        return scope.variables[name]

    @property
    def _innermost(self) -> Scope:
        return next((each for each in reversed(self.scopes) if not each.passing), self.scopes[0])

    def get(self, name: str) -> str | None:
        """Return the text of a variable; None if it is not set."""
        found = self.find(name)
        return found.text if found is not None else None

    def set(self, name: str, text: str) -> None:
        """Give a variable its text, whatever its attributes; of an array that is element 0.

        Raises:
            ReadonlyError, TooLongError: It cannot have it.
        """
        self.store(self.make(name), name, text)

    @staticmethod
    def store(variable: Variable, name: str, text: str, key: Key | None = None) -> None:
        """Give a variable, or its element *key*, a text.

        Raises:
            ReadonlyError, TooLongError: It cannot have it.
        """
        if variable.readonly:
            raise ReadonlyError(f"{name}: readonly variable")
        if len(text) > VALUE_CHARACTERS:
            raise TooLongError(f"a word or value of more than {VALUE_CHARACTERS} characters")
        if variable.case:
            text = text.lower() if variable.case == "l" else text.upper()
        is_array = isinstance(variable.value, dict) or variable.keyed or variable.indexed
        if key is None and not is_array:
            variable.value = text
            return
        if not isinstance(variable.value, dict):
            kept = variable.value
            variable.value = {} if kept is None else {0: kept}
            if variable.keyed:
                variable.value = {}
        if key is None:
            key = "0" if variable.keyed else 0
        variable.value[key] = text

    def unset(self, name: str, key: Key | None = None) -> None:
        """Forget a variable, or one element of it.

        Raises:
            ReadonlyError: It must stay.
        """
        for scope in reversed(self.scopes):
            variable = scope.variables.get(name)
            if variable is None:
                continue
            if variable.readonly:
                raise ReadonlyError(f"{name}: cannot unset: readonly variable")
            if key is not None and isinstance(variable.value, dict):
                variable.value.pop(key, None)
            elif scope is self._innermost and scope is not self.scopes[0]:
                # A function's variable stays its own, without a value.
                scope.variables[name] = Variable()
            else:
                # That of a function further out uncovers what it has hidden.
                del scope.variables[name]
            return

    def names(self) -> list[str]:
        """Return the names of all variables that have a value, sorted."""
        found = {name for scope in self.scopes for name in scope.variables}
        return sorted(name for name in found if self._has_value(name))

    def _has_value(self, name: str) -> bool:
        variable = self.find(name)
        return variable is not None and variable.value is not None

    def environment(self) -> dict[str, str]:
        """Return what programs see, in the order it was first set."""
        seen: dict[str, Variable] = {}
        for scope in self.scopes:
            seen.update(scope.variables)
        return {
            name: variable.value
            for name, variable in seen.items()
            if variable.exported and type(variable.value) is str
        }
