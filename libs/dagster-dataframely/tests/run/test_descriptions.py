"""What a run says of each check, and of itself in its log."""

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support.declare import declare
from support.orders import ALL_BAD, ALL_CHECKS, CLEAN, DRIFTED, SOME, Orders

import dagster_dataframely as dd
from dagster_dataframely._checks.descriptions import SKIPPED

NO_ROW = dict.fromkeys(ALL_CHECKS, "No row fails") | {
    "dy_schema__columns": "Columns and dtypes match"
}


def evaluations(
    definition: dg.AssetsDefinition, instance: dg.DagsterInstance
) -> tuple[dict[str, str | None], dict[str, object], list[str]]:
    """The description and `dy_severity` of each check, and what was logged."""
    result = dg.materialize(
        [definition],
        instance=instance,
        resources={"io_manager": dg.mem_io_manager},
        raise_on_error=False,
    )
    found = result.get_asset_check_evaluations()
    logged = [e.user_message for e in instance.all_logs(result.run_id) if not e.is_dagster_event]
    return (
        {check.check_name: check.description for check in found},
        {check.check_name: check.metadata["dy_severity"].value for check in found},
        logged,
    )


@pytest.mark.parametrize(
    ("returned", "quarantine", "expected"),
    [
        (CLEAN, False, {}),
        (
            SOME,
            False,
            {
                "dy_rule__amount__min": "2 rows fail; nothing was written",
                "dy_rule__note__max_length": (
                    "1 row fails; the rule only warns, but nothing was written"
                ),
                "dy_rule__primary_key": "2 rows fail; nothing was written",
            },
        ),
        (
            SOME,
            True,
            {
                "dy_rule__amount__min": "2 rows fail; set aside",
                "dy_rule__note__max_length": (
                    "1 row fails; written, since the rule only warns, unless an error rule fails too"
                ),
                "dy_rule__primary_key": "2 rows fail; set aside",
            },
        ),
        (
            SOME[:1],
            True,
            {"dy_rule__note__max_length": "1 row fails; written, since the rule only warns"},
        ),
        (
            ALL_BAD,
            True,
            {
                "dy_rule__amount__min": "1 row fails; set aside, and no table was written",
                "dy_rule__amount__nan": "1 row fails; set aside, and no table was written",
                "dy_rule__note__max_length": (
                    "1 row fails; the rule only warns, but no table was written"
                ),
            },
        ),
    ],
    ids=["clean", "abort", "set aside", "only warns", "nothing survives"],
)
def test_each_check_says_what_became_of_the_rows(
    instance: dg.DagsterInstance, returned: pl.DataFrame, quarantine: bool, expected: dict[str, str]
) -> None:
    described, severities, _ = evaluations(
        declare(Orders, returned, quarantine=quarantine), instance
    )
    assert described == NO_ROW | expected
    assert {name for name, said in severities.items() if said == "warn"} == {
        "dy_rule__note__max_length"
    }
    assert severities.keys() == described.keys()


def test_the_column_check_lists_what_does_not_match(instance: dg.DagsterInstance) -> None:
    described, severities, _ = evaluations(declare(Orders, DRIFTED), instance)
    assert severities == {"dy_schema__columns": "error"}
    assert described == {
        "dy_schema__columns": (
            "3 columns do not match: `id` is missing, declared Int64; "
            "`amount` is String, declared Float64; `note` is Int64, declared String; "
            "1 other not declared"
        )
    }


def test_a_skip_says_so(instance: dg.DagsterInstance) -> None:
    described, _, logged = evaluations(declare(Orders, None), instance)
    assert described == dict.fromkeys(ALL_CHECKS, SKIPPED)
    assert logged == []


class Totals(dy.Schema):
    """Two rules over the whole table, and one over rows."""

    a = dy.Int64(min=0)

    @dy.rule()
    def several(cls) -> pl.Expr:
        return pl.len() > 1

    @dd.rule(severity="warn")
    def many(cls) -> pl.Expr:
        return pl.len() > 2


@pytest.mark.parametrize(
    ("values", "quarantine", "expected"),
    [
        ([1, 2, 3], True, ["No row fails", "The table passes", "The table passes"]),
        (
            [1, 2, -1],
            True,
            [
                "1 row fails; set aside",
                "The table passes",
                (
                    "the table fails; written, since the rule only warns, "
                    "unless an error rule fails too"
                ),
            ],
        ),
        (
            [1, -1],
            True,
            [
                "1 row fails; set aside, and no table was written",
                "the table fails; no table was written",
                "the table fails; the rule only warns, but no table was written",
            ],
        ),
        (
            [1],
            False,
            [
                "No row fails",
                "the table fails; nothing was written",
                "the table fails; the rule only warns, but nothing was written",
            ],
        ),
    ],
    ids=["clean", "set aside", "no table", "nothing"],
)
def test_a_rule_over_the_table_says_so(
    instance: dg.DagsterInstance, values: list[int], quarantine: bool, expected: list[str]
) -> None:
    returned = pl.DataFrame({"a": values})
    described, _, _ = evaluations(declare(Totals, returned, quarantine=quarantine), instance)
    names = ("a__min", "several", "many")
    assert [described[f"dy_rule__{name}"] for name in names] == expected


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (CLEAN, ["4 rules pass", "1 rule passes"]),
        (
            SOME,
            [
                "1 of 4 rules fails: `amount|min` (2 rows); error rows set aside",
                "1 of 1 rule fails: `note|max_length` (1 row); "
                "written, since the rules only warn, unless an error rule fails too",
            ],
        ),
    ],
    ids=["clean", "set aside"],
)
def test_a_check_of_several_rules_lists_those_that_fail(
    instance: dg.DagsterInstance, returned: pl.DataFrame, expected: list[str]
) -> None:
    orders = declare(Orders, returned, quarantine=True, check_granularity="column")
    described, severities, _ = evaluations(orders, instance)
    assert [described[f"dy_col__{name}"] for name in ("amount", "note")] == expected
    assert (severities["dy_col__amount"], severities["dy_col__note"]) == ("error", "warn")


def test_the_worst_of_several_rules_comes_first(instance: dg.DagsterInstance) -> None:
    orders = declare(Orders, SOME, check_granularity="schema")
    described, severities, _ = evaluations(orders, instance)
    assert severities["dy_schema__rules"] == "error"
    assert described["dy_schema__rules"] == (
        "3 of 7 rules fail: `amount|min` (2 rows), `primary_key` (2 rows), "
        "`note|max_length` (1 row, only warns); nothing was written"
    )


def test_checks_without_a_policy_say_what_they_found() -> None:
    found = dd.wiring.evaluate(Orders, SOME, asset="orders")
    described = {result.check_name: result.description for result in found}
    assert described == NO_ROW | {
        "dy_rule__amount__min": "2 rows fail",
        "dy_rule__note__max_length": "1 row fails; the rule only warns",
        "dy_rule__primary_key": "2 rows fail",
    }


def test_the_log_sums_up_the_run(instance: dg.DagsterInstance) -> None:
    *_, logged = evaluations(declare(Orders, SOME, quarantine=True), instance)
    head, *lines = logged[-1].split("\n")
    assert head.startswith("orders: 5 rows in, 1 written in 0.")
    assert head.endswith(" s, 4 set aside (80.0%). 3 of 7 rules fail:")
    assert lines == [
        "  amount|min (error): 2 rows",
        "  primary_key (error): 2 rows",
        "  note|max_length (warn): 1 row",
    ]


@pytest.mark.parametrize(
    ("returned", "quarantine", "head"),
    [
        (SOME, False, "orders: 5 rows in, no table written, 4 failed an error rule (80.0%). "),
        (ALL_BAD, True, "orders: 2 rows in, no table written, 2 set aside (100.0%). "),
    ],
    ids=["abort", "nothing survives"],
)
def test_a_run_without_a_table_is_summed_up_too(
    instance: dg.DagsterInstance, returned: pl.DataFrame, quarantine: bool, head: str
) -> None:
    *_, logged = evaluations(declare(Orders, returned, quarantine=quarantine), instance)
    assert logged[-1].startswith(head)


def test_a_clean_run_is_one_line(instance: dg.DagsterInstance) -> None:
    *_, logged = evaluations(declare(Orders, CLEAN), instance)
    (line,) = (text for text in logged if text.startswith("orders: "))
    assert line.startswith("orders: 3 rows in, 3 written in 0.")
    assert line.endswith(" s.")


def test_the_summary_of_many_failing_rules_is_short(instance: dg.DagsterInstance) -> None:
    columns = {f"c{number}": dy.Int64(min=0) for number in range(60)}
    wide = type("Wide", (dy.Schema,), columns)
    frame = pl.DataFrame({name: [-1] for name in columns})
    *_, logged = evaluations(declare(wide, frame), instance)
    lines = logged[-1].split("\n")
    assert lines[0].endswith("60 of 120 rules fail:")
    assert (len(lines), lines[-1]) == (12, "  and 50 more rules")
