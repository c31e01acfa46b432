"""Python values as the text of scenarios."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from gridhaul._errors import InputError

__all__ = ["U32_MAX", "U64_MAX", "Value", "setting", "toml", "values", "whole"]

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1

Value: TypeAlias = "str | bool | int | float | Mapping[str, Value] | Sequence[Value]"
"""A value of a scenario: a text with its unit, a number, a table or a list."""


def toml(scenario: Mapping[str, Value]) -> str:
    """Write a scenario as TOML."""
    if not isinstance(scenario, Mapping):
        raise TypeError(f"expected a dict of the scenario's keys, found {_kind(scenario)}")
    lines: list[str] = []
    _table(scenario, "", lines)
    return "\n".join(lines) + "\n"


def setting(key: str, value: Value) -> str:
    """Write a key and its value as the command line takes them."""
    return f"{_checked_key(key)}={_plain(key, value)}"


def values(key: str, of_key: Sequence[Value] | str) -> str:
    """Write a key and the values of its sweep as the command line takes them."""
    if isinstance(of_key, str):
        # A range such as "lin:1 Mbit/s:3 Mbit/s:5", or a list in one text.
        return f"{_checked_key(key)}={of_key}"
    if not isinstance(of_key, Sequence) or not of_key:
        raise TypeError(
            f"{key}: expected a list of at least one value, or a range such as "
            f'"lin:1 Mbit/s:10 Mbit/s:10", found {_kind(of_key)}'
        )
    return f"{_checked_key(key)}={','.join(_plain(key, value) for value in of_key)}"


def whole(
    name: str,
    number: int,
    *,
    least: int = 0,
    most: int = U64_MAX,
    error: type[InputError] = InputError,
) -> None:
    """Check that an argument is a whole number in the range that the native module takes."""
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise TypeError(f"{name}: expected a whole number, found {type(number).__name__}")
    if number < least:
        raise error(f"{name}: expected {least} or more, found {number}")
    if number > most:
        raise error(f"{name}: expected at most {most}, found {number}")


def _table(table: Mapping[str, Value], path: str, lines: list[str]) -> None:
    """Append the lines of a table: its values, then its tables."""
    tables: list[tuple[str, Mapping[str, Value]]] = []
    for key, value in table.items():
        if not isinstance(key, str):
            raise TypeError(f"{path or 'scenario'}: expected text as a key, found {_kind(key)}")
        name = _key(key)
        if isinstance(value, Mapping):
            tables.append((f"{path}.{name}" if path else name, value))
        else:
            lines.append(f"{name} = {_inline(f'{path}.{name}' if path else name, value)}")
    for name, inner in tables:
        lines.append(f"[{name}]")
        _table(inner, name, lines)


def _inline(path: str, value: Value) -> str:
    """Write a value in one line."""
    # A bool is an int, so it comes first.
    if isinstance(value, bool):
        return "true" if value else "false"
    # The numbers of numpy are no int, or a float with another `repr`.
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if not math.isfinite(number):
            raise InputError(f"{path}: {number} is not a value of a scenario\n  help: leave it out")
        return repr(number)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        inner = (f"{_key(key)} = {_inline(f'{path}.{key}', item)}" for key, item in value.items())
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        items = (_inline(f"{path}[{index}]", item) for index, item in enumerate(value))
        return "[" + ", ".join(items) + "]"
    raise TypeError(
        f"{path}: expected a text with its unit, a number, a dict or a list, found {_kind(value)}"
    )


def _plain(key: str, value: Value) -> str:
    """Write a value for the command line, where quotes around most texts may be omitted."""
    if isinstance(value, str) and value and not _needs_quotes(value):
        return value
    return _inline(key, value)


def _needs_quotes(text: str) -> bool:
    """Whether a text without quotes would be read as something else: a number, a date."""
    special = any(character in text for character in ",\"'[]{}\n\r\t\\#=")
    spaced = text != text.strip()
    # Of the values of TOML that begin with a digit, only a date with a time has a space.
    first, space, _ = text.partition(" ")
    digit = text[0].isdigit() and (not space or "-" in first)
    return special or spaced or digit or text in {"true", "false", "inf", "nan"} or text[0] in "+-"


def _quoted(text: str) -> str:
    """Write a text as a basic string of TOML."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    characters = (
        escapes.get(character)
        or (
            f"\\u{ord(character):04x}"
            if ord(character) < 0x20 or ord(character) == 0x7F
            else character
        )
        for character in text
    )
    return '"' + "".join(characters) + '"'


def _key(key: str) -> str:
    """Write a key, in quotes where TOML needs them."""
    bare = key and all(
        character.isascii() and (character.isalnum() or character in "_-") for character in key
    )
    return key if bare else _quoted(key)


def _checked_key(key: str) -> str:
    if not isinstance(key, str) or not key.strip() or "=" in key:
        raise InputError(
            f"{key!r} is not the path of a key\n  help: write it as in a scenario, such as "
            '"link.uplink.forward.rate"'
        )
    return key


def _kind(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"
