"""Read severities where a schema's author declares them: on a column or on a rule."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import dataframely as dy
import polars as pl

from dagster_dataframely._names import SCHEMA_METADATA_KEY
from dagster_dataframely._upstream.dataframely import RuleFactory

Severity = Literal["error", "warn"]


_EVERY_RULE = "*"


_NULLABILITY = "nullability"


def severity(severity: Severity | None = None, /, **rules: Severity) -> dict[str, dict[str, Any]]:
    """Column metadata that says how bad a failure of the column's rules is.

    Runs at definition. The result is a plain mapping for `metadata=` of a Dataframely column; merge it
    into other metadata with `**`. It never shows as a column tag. A name that is no rule of the column
    is reported when an asset is declared with the schema, not here.

    Args:
        severity: For every rule of the column: `"error"` keeps a failing row out of the table, `"warn"`
            writes it and only fails the check. `None` leaves the rules that are not named at `"error"`.
        **rules: For one rule, by the name of the column argument that makes it (`min`, `regex`, ...).
            `nullable` names the rule that forbids nulls, `check` every `check` of the column.

    Returns:
        `{"dagster_dataframely": {"severity": ...}}`.

    Example:
        ```python
        import dataframely as dy

        import dagster_dataframely as dd


        class Orders(dy.Schema):
            id = dy.Int64(primary_key=True)
            amount = dy.Float64(min=0.0, metadata={"unit": "EUR", **dd.severity(min="warn")})
        ```
    """
    value: Any = severity if not rules else dict(rules)
    if rules and severity is not None:
        value = {_EVERY_RULE: severity, **rules}
    return {SCHEMA_METADATA_KEY: {"severity": value}}


def rule(
    *, severity: Severity = "error", **arguments: Any
) -> Callable[[Callable[[Any], pl.Expr]], RuleFactory]:
    """`dy.rule()` with a severity: mark a function of a schema as a rule over its rows.

    Runs at definition. The function takes the schema class and returns an expression that is true for
    the rows that are valid; a null counts as valid, as with `dy.rule()`. Its docstring becomes the
    description of the asset check.

    Args:
        severity: `"error"` keeps a failing row out of the table; `"warn"` writes it and only fails the
            check. Anything else is reported when an asset is declared with the schema.
        **arguments: What `dy.rule` takes: nothing in Dataframely 3, `group_by` in Dataframely 2.

    Returns:
        The decorator, which gives what `dy.rule()` gives.

    Example:
        ```python
        import dataframely as dy
        import polars as pl

        import dagster_dataframely as dd


        class Trips(dy.Schema):
            start = dy.Datetime()
            end = dy.Datetime()

            @dd.rule(severity="warn")
            def ends_after_it_starts(cls) -> pl.Expr:
                "A trip ends after it starts."
                return cls.end.col > cls.start.col
        ```
    """

    def decorate(function: Callable[[Any], pl.Expr]) -> RuleFactory:
        setattr(function, SCHEMA_METADATA_KEY, {"severity": severity})
        return dy.rule(**arguments)(function)

    return decorate


def declared_on_rule(factory: RuleFactory) -> Any:
    """The severity given to `rule`, unchecked; `"error"` for a plain `dy.rule()`."""
    return getattr(factory.validation_fn, SCHEMA_METADATA_KEY, {}).get("severity", "error")


def declared_on_column(metadata: Mapping[str, Any] | None, rules: list[str]) -> dict[str, Any]:
    """The severities a column's metadata gives, unchecked, by the column's own rule names.

    A word that matches none of the rules is kept as it is, so that whoever checks can name it.
    """
    declared = ((metadata or {}).get(SCHEMA_METADATA_KEY) or {}).get("severity")
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        return dict.fromkeys(rules, declared)
    words = cast("Mapping[str, Any]", declared)
    severities = dict.fromkeys(rules, words[_EVERY_RULE]) if _EVERY_RULE in words else {}
    for word, value in words.items():
        if word != _EVERY_RULE:
            severities.update(dict.fromkeys(_rules_of_word(word, rules), value))
    return severities


def _rules_of_word(word: str, rules: list[str]) -> list[str]:
    if word == "nullable":
        return [_NULLABILITY] if _NULLABILITY in rules else [word]
    if word == "check":
        return [rule for rule in rules if rule.split("__")[0] == "check"] or [word]
    return [word]
