"""What tables of the site say of names, settings, errors and exits is what the code does."""

import ast
import inspect
import re
import textwrap
from enum import Enum
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from support import fault_runs
from support.round_trips import (
    ALL_DTYPES,
    DTYPES,
    STORAGES,
    managers,
    send,
    series_of,
    session_zone,
)

import dagster_dataframely as dd
from dagster_dataframely import __main__ as command
from dagster_dataframely import _names, _settings
from dagster_dataframely._checks import specs as _checks
from dagster_dataframely._infer.files import KINDS
from dagster_dataframely._io_managers.dtypes import find_unstorable
from dagster_dataframely._metadata.statistics import describe_families
from dagster_dataframely.components import QuarantineSpec, RuleChecks
from dagster_dataframely.data import OrdersSchema, invalid_orders, valid_orders

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
Rows = list[list[str]]


def read_table(path: Path, *heading: str) -> Rows:
    """The rows of the table of a page with this heading."""
    blocks = re.findall(r"(?:^\|.*\n)+", path.read_text(), re.MULTILINE)
    tables = [
        [[cell.strip() for cell in line.strip(" |\n").split(" | ")] for line in block.splitlines()]
        for block in blocks
    ]
    ((_, _, *rows),) = (table for table in tables if table[0] == list(heading))
    return rows


def names(rows: Rows, column: int = 0) -> list[str]:
    return [re.findall(r"`([^`]+)`", row[column])[0] for row in rows]


# Settings and errors.


def show(value: object) -> str:
    if value is None or value == frozenset():
        return "unset"
    return f"`{value.value if isinstance(value, Enum) else str(value).lower()}`"


def test_the_settings_list_is_the_codes() -> None:
    page = DOCS / "reference/settings.md"
    defaults = _settings.Settings()
    assert read_table(page, "setting", "variable", "default", "allowed") == [
        [
            f"`{name}`",
            f"`{_settings.ENVIRONMENT_PREFIX}{name.upper()}`",
            show(getattr(defaults, name)),
            setting.allowed,
        ]
        for name, setting in _settings.SETTINGS.items()
    ]
    from_environment = read_table(page, "variable", "default", "allowed")
    assert names(from_environment) == [_settings.QUARANTINE_DIR_VARIABLE]


def test_the_variables_named_on_the_site_exist() -> None:
    text = "".join(path.read_text() for path in DOCS.rglob("*.md"))
    found = set(re.findall(r"DAGSTER_DATAFRAMELY_\w+", text))
    known = {_settings.ENVIRONMENT_PREFIX + name.upper() for name in _settings.SETTINGS}
    assert found == known | {_settings.QUARANTINE_DIR_VARIABLE}


def stored_attributes(error: type) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(error)))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def test_the_error_list_is_the_codes() -> None:
    errors = {name: getattr(dd.errors, name) for name in dd.errors.__all__}
    whens = {
        dg.Failure: "run",
        dg.DagsterInvalidDefinitionError: "definition",
        UserWarning: "definition",
        Exception: "command",
    }
    listed = {
        name: (
            next(when for base, when in whens.items() if issubclass(error, base)),
            stored_attributes(error),
        )
        for name, error in errors.items()
        if issubclass(error, Exception) and error is not dd.errors.DagsterDataframelyError
    }
    rows = read_table(DOCS / "reference/errors.md", "error", "when", "attributes")
    found = {
        name: (row[1], set(re.findall(r"`(\w+)`", row[2])))
        for name, row in zip(names(rows), rows, strict=True)
    }
    assert found == listed


# Names and metadata.


class Trips(dy.Schema):
    """A rule of a column and one of the schema."""

    km = dy.Int64(nullable=True, min=0)

    @dy.rule()
    def not_all_alike(cls) -> pl.Expr:
        return cls.km.col.n_unique() >= 0


def expected_checks(granularity: str, multi_column_rules: str) -> set[str]:
    specs = dd.wiring.check_specs(
        Trips,
        asset="trips",
        check_granularity=granularity,  # type: ignore[arg-type]
        multi_column_rules=multi_column_rules,  # type: ignore[arg-type]
    )
    return {re.sub(r"^(dy_rule__|dy_col__).*", r"\1", spec.name) for spec in specs}


def test_the_list_of_checks_says_which_are_there_at_each_granularity() -> None:
    rows = read_table(DOCS / "concepts/names.md", "check", "reports on", "there at granularity")
    listed = {name.partition("<")[0]: row[2] for name, row in zip(names(rows), rows, strict=True)}
    for granularity in ("rule", "column", "schema"):
        there = expected_checks(granularity, "schema") | expected_checks(granularity, "per_rule")
        said = {
            name for name, where in listed.items() if where == "each" or f"`{granularity}`" in where
        }
        assert said == there


WRITES = DOCS / "concepts/what-a-run-writes.md"


def metadata_of(frame: pl.DataFrame, partition: str | None = None, **settings: Any) -> set[str]:
    partitions_def = dg.StaticPartitionsDefinition(["a"]) if partition else None
    decorate = dd.asset(
        OrdersSchema, name="orders", quarantine=True, partitions_def=partitions_def, **settings
    )
    return set(dd.testing.invoke(decorate(lambda: frame), partition_key=partition).metadata)


@pytest.mark.parametrize(
    ("frame", "partition", "settings", "conditions"),
    [
        (valid_orders(), None, {}, {"row_sample", "statistics"}),
        (valid_orders(), "a", {}, {"row_sample", "statistics", "partitioned"}),
        (valid_orders(), None, {"row_sample": 0, "statistics": False}, set()),
        (invalid_orders(), None, {}, {"row_sample", "statistics", "error rows"}),
        (invalid_orders(), None, {"row_sample": 0}, {"statistics", "error rows"}),
    ],
    ids=["clean", "partitioned", "bare", "error rows", "no sample"],
)
def test_the_list_of_metadata_says_what_is_there_when(
    frame: pl.DataFrame, partition: str | None, settings: dict[str, Any], conditions: set[str]
) -> None:
    rows = read_table(WRITES, "key", "what", "when")
    listed = dict(zip(names(rows), [row[2] for row in rows], strict=True))
    said = {
        key
        for key, when in listed.items()
        if {part.strip("`") for part in re.sub(" above 0", "", when).split(", ")}
        <= conditions | {"always"}
    }
    assert said == metadata_of(frame, partition, **settings)


def test_the_list_of_check_metadata_says_what_is_on_which_check() -> None:
    rows = read_table(WRITES, "key", "what", "on")
    listed = dict(zip(names(rows), [row[2] for row in rows], strict=True))
    keys = {value for name, value in vars(_names).items() if str(value).startswith("dy_")}
    prefixes = {_names.COLUMN_PREFIX, _names.COLUMNS_CHECK, _names.RULES_CHECK}
    prefixes |= {_names.FAILED_RULES, _names.RUN_ID, _names.WRITTEN_AT}  # In a quarantine.
    prefixes |= {_names.PARTITION, _names.REDACTED}  # In what is read of one.
    prefixes |= {_names.ORIGINAL}  # In a frame.
    assert set(listed) == keys - prefixes
    wide = invalid_orders().with_columns(extra=1)
    single = {
        check.check_name or "": set(check.metadata or {})
        for check in dd.wiring.evaluate(OrdersSchema, wide, asset="orders")
    }
    (_, collapsed) = dd.wiring.evaluate(
        OrdersSchema, wide, asset="orders", check_granularity="schema"
    )
    one = {k for k, where in listed.items() if where in ("a check of one rule", "every check")}
    assert one == single["dy_rule__gift__nullability"] - {"dy_failed_sample"}
    unique = {key for key, where in listed.items() if "uniqueness rule" in where}
    assert single["dy_rule__primary_key"] == one | unique | {"dy_failed_sample"}
    assert single["dy_schema__columns"] == {"dy_severity", "dy_extra_columns"}
    assert set(collapsed.metadata or {}) == {"dy_rules", "dy_severity", "dy_failed_sample"}


def test_the_site_says_how_many_checks_are_many() -> None:
    page = (DOCS / "guides/deployment.md").read_text()
    assert f"An asset with more than {_checks.MANY_CHECKS} checks gives" in page
    page = (DOCS / "guides/troubleshooting.md").read_text()
    assert f"Above {_checks.MANY_CHECKS}, a `ManyChecksWarning`" in page


# The seven exits.


class Orders(dy.Schema):
    """One error rule and one warn rule."""

    id = dy.Int64(nullable=True, min=0)
    note = dy.String(nullable=True, max_length=1, metadata=dd.severity("warn"))


EXITS_PAGE = DOCS / "concepts/exits.md"
NO_QUARANTINE = "\N{EN DASH}"
OUTCOME = ("table", "quarantine", "checks", "run")

WARNS = pl.DataFrame({"id": [1], "note": ["long"]})
SOME = pl.DataFrame({"id": [1, -1], "note": [None, None]}, schema=WARNS.schema)
MANY = pl.concat([SOME, SOME.tail(1)])
"""Two of three rows are error rows."""
EXITS = [
    (WARNS.drop("note"), True),
    (WARNS, True),
    (SOME, False),
    (SOME, True),
    (SOME.tail(1), True),
    (MANY, True),
    (None, True),
]
LIMIT = 0.5


def observe(frame: pl.DataFrame | None, *, quarantine: bool) -> list[str]:
    """A row of the table of exits, but for its first cell."""
    written: dict[str, int] = {}

    class Recorder(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
            written[context.asset_key.path[-1]] = obj.height

        def load_input(self, context: dg.InputContext) -> None: ...

    orders = dd.asset(Orders, name="orders", quarantine=quarantine, max_error_share=LIMIT)(
        lambda: frame
    )
    result = dg.materialize([orders], resources={"io_manager": Recorder()}, raise_on_error=False)
    checks = result.get_asset_check_evaluations()
    failed = {check.check_name: check.severity.name for check in checks if not check.passed}
    failures = [e.step_failure_data.error for e in result.get_step_failure_events()]
    error = failures[0].cls_name if failures and failures[0] else None
    height = 0 if frame is None else frame.height
    table = {None: "not written", height: "every row"}.get(
        written.get("orders"), "the surviving rows"
    )
    kept = "every error row" if "orders_quarantine" in written else "not written"
    said = {
        "{'dy_schema__columns': 'ERROR'}": "`dy_schema__columns` fails; no rule is evaluated",
        "{'dy_rule__note__max_length': 'WARN'}": "failing warn rules at WARN, the rest pass",
        "{'dy_rule__id__min': 'ERROR'}": "each failing rule at its own severity",
        "{'dy_rule__id__min': 'WARN'}": "failing rules at WARN",
        "{}": "every check passes",
    }[str(failed)]
    assert (len(checks) == 1) == ("no rule is evaluated" in said)
    materialized = bool(result.asset_materializations_for_node("orders"))
    run = (
        f"fails, `{error}`"
        if error
        else "succeeds" + ("" if materialized else ", not materialized")
    )
    return [table, kept if quarantine else NO_QUARANTINE, said, run]


def test_the_table_of_exits_is_what_runs_do() -> None:
    rows = read_table(EXITS_PAGE, "returned", *OUTCOME)
    assert [row[1:] for row in rows] == [
        observe(frame, quarantine=quarantine) for frame, quarantine in EXITS
    ]
    assert rows == read_table(ROOT / "README.md", "the function returned", *OUTCOME)


def test_the_diagram_of_exits_names_the_errors_of_the_table() -> None:
    diagram = EXITS_PAGE.read_text().partition("```mermaid")[2].partition("```")[0]
    errors = set(re.findall(r"\w+Error", str(read_table(EXITS_PAGE, "returned", *OUTCOME))))
    assert set(re.findall(r"\w+Error", diagram)) == errors
    assert diagram.count("([") == len(EXITS)


class Two(Orders):
    """And a rule over the whole table."""

    @dd.rule()
    def at_least_two(cls) -> pl.Expr:
        return pl.len() >= 2


@pytest.mark.parametrize(
    ("schema", "frame", "quarantine"),
    [
        *((Orders, frame, quarantine) for frame, quarantine in EXITS),
        (Two, WARNS, True),
        (Two, SOME, False),
        (Two, SOME, True),
        (Two, SOME.tail(1), True),
        (Two, MANY, True),
        (Two, pl.concat([WARNS, WARNS]), True),
        (Two, pl.concat([SOME, WARNS]), True),
    ],
)
def test_the_diagram_of_exits_leads_to_what_a_run_does(
    schema: type[dy.Schema], frame: pl.DataFrame | None, *, quarantine: bool
) -> None:
    diagram = EXITS_PAGE.read_text().partition("```mermaid")[2].partition("```")[0]
    steps = [re.split(r" (?:-- (\w+) )?--> ", line.strip()) for line in diagram.splitlines()]
    nodes = {node: re.match(r"\w+", node) for step in steps for node in step[::2]}
    name = {node: found[0] for node, found in nodes.items() if found}
    then = {
        (name[start], answer): name[end]
        for start, answer, end in (
            step[i : i + 3] for step in steps for i in range(0, len(step) - 2, 2)
        )
    }
    orders = dd.asset(schema, name="orders", quarantine=quarantine, max_error_share=LIMIT)(
        lambda: frame
    )
    resources = {"io_manager": dg.mem_io_manager}
    result = dg.materialize([orders], resources=resources, raise_on_error=False)
    failed = {e.check_name for e in result.get_asset_check_evaluations() if not e.passed}
    has_errors = "dy_rule__id__min" in failed
    answers = {
        "isnone": frame is None,
        "columns": "dy_schema__columns" not in failed,
        "errors": has_errors,
        "quarantine": quarantine,
        "survive": frame is not None and not frame.equals(SOME.tail(1)),
        "share": frame is not None and frame.equals(MANY),
        "total": "dy_rule__at_least_two" in failed,
        "rest": "dy_rule__at_least_two" in failed,
    }
    node = "returned"
    while (node, None) in then or (node, "yes") in then:
        answer = {True: "yes", False: "no", None: None}[answers.get(node)]
        node = then[node, answer]
    (end,) = {text for text in name if name[text] == node and "([" in text}
    failures = [e.step_failure_data.error for e in result.get_step_failure_events()]
    raised = failures[0].cls_name if failures and failures[0] else None
    assert re.findall(r"\w+Error", end) == ([raised] if raised else [])
    assert ("written" in end and "nothing" not in end and "no table" not in end) == bool(
        result.asset_materializations_for_node("orders")
    )


# The command.

INFER = DOCS / "guides/infer.md"


def test_the_options_on_the_site_are_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_table(INFER, "option", "what it does")
    with pytest.raises(SystemExit):
        command.main(["infer", "--help"])
    usage = " ".join(capsys.readouterr().out.split())
    offered = re.findall(r"\[(--[^\]]+)\]", usage)
    assert [row[0].strip("`") for row in rows] == offered


def test_the_kinds_of_files_on_the_site_are_those_that_are_read() -> None:
    rows = read_table(INFER, "file", "how")
    assert [suffix for row in rows for suffix in re.findall(r"`(\.[\w.]+)`", row[0])] == list(KINDS)


# The component.


def test_the_attributes_on_the_site_are_the_components() -> None:
    page = DOCS / "guides/component.md"
    assert names(read_table(page, "attribute", "meaning")) == list(RuleChecks.model().model_fields)
    sentence = page.read_text().partition("Each entry of `quarantine_specs` has ")[2]
    listed = re.findall(r"`(\w+)`", sentence.partition(".")[0])
    assert listed == list(QuarantineSpec.model().model_fields)


# Other facts.


def test_the_arguments_that_are_refused_are_those_the_guide_lists() -> None:
    from dagster_dataframely._assets.asset import DECIDED

    page = (DOCS / "guides/declare.md").read_text()
    sentence = page.partition("but for four: ")[2].partition(".")[0]
    assert re.findall(r"`(\w+)`", sentence) == list(DECIDED)


def test_the_glossary_is_in_order_and_has_the_words_of_this_library() -> None:
    rows = read_table(DOCS / "concepts/glossary.md", "word", "whose", "meaning")
    words = [row[0] for row in rows]
    assert words == sorted(words, key=str.lower)
    ours = {row[0] for row in rows if row[1] == "ours"}
    assert ours == {"error row", "exit", "quarantine", "table rule", "verdict", "warn row"}


def show_dtype(found: pl.DataType, written: pl.DataType, storage: str) -> str:
    """What comes back, in the words of the guide."""
    if found == written:
        return "the same"
    if not (isinstance(found, pl.Datetime) and isinstance(written, pl.Datetime)):
        return f"`{found.base_type()}`"
    unit = "" if found.time_unit == written.time_unit else found.time_unit
    zone = ""
    if found.time_zone is not None:
        expected = session_zone() if storage == "DuckDB" else "UTC"
        assert found.time_zone == expected
        zone = "in the session's zone" if storage == "DuckDB" else "in UTC"
    return ", ".join(part for part in (unit, zone) if part)


def comes_back(storage: Any, manager: object) -> list[str]:
    """A column of the table of dtypes, below its heading."""
    columns = {f"c{number}": series_of(dtype) for number, dtype in enumerate(ALL_DTYPES)}
    frame = pl.DataFrame(columns)
    error = find_unstorable("any", storage, frame.schema)
    refused = [] if error is None else list(error.columns)
    found = send(frame.drop(refused), manager)
    words = {
        name: "refused" if name in refused else show_dtype(found.schema[name], dtype, storage)
        for name, dtype in frame.schema.items()
    }
    numbers = iter(columns)
    rows = [[words[next(numbers)] for _ in dtypes] for dtypes in DTYPES.values()]
    return [", ".join(dict.fromkeys(row)) for row in rows]


@pytest.mark.io_managers
def test_storages_give_back_the_dtypes_that_the_guide_says(tmp_path: Path) -> None:
    page = DOCS / "guides/warehouses.md"
    columns = [comes_back(storage, manager) for storage, manager in managers(tmp_path).items()]
    rows = [list(row) for row in zip(DTYPES, *columns, strict=True)]
    assert read_table(page, "written", *STORAGES) == rows


def test_what_the_guide_says_is_left_is_what_faults_leave() -> None:
    page = DOCS / "guides/faults.md"
    assert read_table(page, "what happens", "left of", *fault_runs.STORAGES) == [
        [fault, thing, *left]
        for fault, things in fault_runs.LEFT.items()
        for thing, left in things.items()
    ]


def test_what_the_guide_has_in_dagster_yaml_limits_pools_and_monitors_runs(tmp_path: Path) -> None:
    page = (DOCS / "guides/faults.md").read_text()
    fences = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "dagster.yaml").write_text("".join(fences))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1
        assert instance.run_monitoring_enabled


def test_the_statistics_named_are_those_recorded() -> None:
    page = DOCS / "concepts/what-a-run-writes.md"
    named = {
        family: re.findall(r"`(\w+)`", words)
        for family, words in re.findall(
            r"^\| `dataframely/valid_stats/(\w+)` \| (.*?) \|", page.read_text(), re.MULTILINE
        )
    }
    recorded = {
        family: [statistic for statistic in rows[0] if statistic != "column"]
        for family, rows in describe_families(valid_orders()).items()
    }
    assert named == recorded
