"""Judge the rows that `dd.parse` made: what was lost fails, and no other rule says anything of it."""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from dagster_dataframely._cells import MAX_CHARACTERS
from dagster_dataframely._names import ORIGINAL
from dagster_dataframely._schema.original import failed_in
from dagster_dataframely._schema.rules import Rule, SchemaRules, dtype_rule_name
from dagster_dataframely._schema.words import describe_dtype


def judge_parsed(rules: SchemaRules, found: Mapping[str, pl.DataType]) -> SchemaRules:
    """Add a rule on the dtype of each column, where a frame has `dy_original`.

    The other rules say nothing of a row whose values they look at were lost.
    """
    if found.get(ORIGINAL) != pl.String:
        return rules
    on_dtypes = [
        Rule(
            name=dtype_rule_name(name),
            column=name,
            severity="warn" if name in rules.dtype_warns else "error",
            constraint=f"parses as {describe_dtype(column, MAX_CHARACTERS)}",
            expression=~failed_in(name),
            is_dtype=True,
        )
        for name, column in rules.columns.items()
    ]
    others = [replace(rule, unknown=_unknown(rules, rule)) for rule in rules.rules]
    return replace(rules, parsed=True, rules=(*on_dtypes, *others))


def without_passing(rules: SchemaRules, counts: Mapping[str, int]) -> SchemaRules:
    """The rules without those on dtypes that no row fails: most columns have nothing to tell."""
    if not rules.parsed:
        return rules
    return replace(
        rules, rules=tuple(rule for rule in rules.rules if not rule.is_dtype or counts[rule.name])
    )


def _unknown(rules: SchemaRules, rule: Rule) -> pl.Expr | None:
    """Where a rule says nothing of a row; `None` where it always does."""
    if rule.whole_table or rule.is_filter:
        return None
    # Of a selector, Polars cannot say which columns it stands for (1.35 to 2.1).
    selects = rule.expression.meta.has_multiple_outputs()
    named = set(rules.columns) if selects else {*rule.expression.meta.root_names(), rule.column}
    # A null that is kept, since the rule on its dtype only warns, has to be allowed.
    if rule.column in rules.dtype_warns and rule.name == f"{rule.column}|nullability":
        return None
    lost = [failed_in(name) for name in rules.columns if name in named]
    return pl.any_horizontal(lost) if lost else None
