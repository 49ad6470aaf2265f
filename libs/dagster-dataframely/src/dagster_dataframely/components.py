"""A Dagster component: checks and quarantines of existing assets, from YAML.

`dg` finds it by its entry point; `import dagster_dataframely` does not import it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import dagster as dg
import dataframely as dy

from dagster_dataframely._checks.rule_checks import build_rule_checks
from dagster_dataframely._names import CoercibleToAssetKey
from dagster_dataframely._quarantine.spec import build_quarantine_spec
from dagster_dataframely._references import ASSET, PARTITIONS, SCHEMA, Kind, import_reference

__all__ = ["DataframelyComponent", "QuarantineSpec", "RuleChecks"]


def _importing(kind: Kind) -> Callable[[dg.ResolutionContext, str], Any]:
    return lambda _context, reference: import_reference(reference, kind)


def _resolve_asset(_context: dg.ResolutionContext, text: str) -> Any:
    return import_reference(text, ASSET) if ":" in text else dg.AssetKey.from_user_string(text)


_Schema = Annotated[
    type[dy.Schema],
    dg.Resolver(
        _importing(SCHEMA),
        model_field_type=str,
        description="The schema class: `module:Class` or `module.Class`.",
        examples=["my_project.schemas:Orders"],
    ),
]
_Asset = Annotated[
    dg.AssetsDefinition | dg.AssetSpec | CoercibleToAssetKey,
    dg.Resolver(
        _resolve_asset,
        model_field_type=str,
        description="The asset's key, its parts parted by `/`; or its definition or spec, as "
        "`module:name`, which brings its partitions along.",
        examples=["sales/orders", "my_project.defs.orders:orders"],
    ),
]
_Partitions = Annotated[
    dg.PartitionsDefinition[Any] | None,
    dg.Resolver(
        _importing(PARTITIONS),
        model_field_type=str,
        description="The asset's partitions, as `module:NAME`, where `asset` is the key of a "
        "partitioned asset.",
        examples=["my_project.partitions:DAYS"],
    ),
]


@dataclass
class RuleChecks(dg.Resolvable):
    """The checks of a schema for one asset, as `dd.build_rule_checks` makes them.

    Example:
        ```python
        from dagster_dataframely.components import DataframelyComponent

        entry = {
            "schema_class": "dagster_dataframely.data:OrdersSchema",
            "asset": "sales/orders",
            "check_granularity": "schema",
        }
        component = DataframelyComponent.from_attributes_dict(attributes={"rule_checks": [entry]})
        checks = component.rule_checks[0].build()
        print(sorted(key.to_user_string() for key in checks.check_keys))
        #> ['sales/orders:dy_schema__columns', 'sales/orders:dy_schema__rules']
        ```
    """

    schema_class: _Schema
    asset: _Asset
    partitions_def: _Partitions = None
    severities: Annotated[
        dict[str, str] | None,
        dg.Resolver.default(
            description="`error` or `warn` by rule, over what the schema says.",
            examples=[{"amount|min": "warn"}],
        ),
    ] = None
    cast: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether columns of other dtypes are cast to the schema's first, as a "
            "database's have to be."
        ),
    ] = False
    blocking: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether downstream assets of the same run wait for the checks, and do not "
            "start while a rule with severity error fails."
        ),
    ] = False
    check_granularity: Annotated[
        Literal["rule", "column", "schema"] | None,
        dg.Resolver.default(description="A check for each rule, for each column, or one for all."),
    ] = None
    multi_column_rules: Annotated[
        Literal["schema", "per_rule"] | None,
        dg.Resolver.default(
            description="At granularity `column`: whether the rules that no single column owns "
            "share a check."
        ),
    ] = None
    max_failure_samples: Annotated[
        int | None,
        dg.Resolver.default(
            description="How many rows that fail a rule its check shows; 0 shows none."
        ),
    ] = None
    redact: Annotated[
        list[str] | None,
        dg.Resolver.default(
            description="Columns whose values no check shows, beside those that the schema marks.",
            examples=[["customer"]],
        ),
    ] = None
    automation_condition: Annotated[
        dg.AutomationCondition[Any] | None,
        dg.Resolver.default(
            model_field_type=str,
            description="When the checks run by themselves; without one they run with the asset.",
            examples=["{{ dg.AutomationCondition.eager() }}"],
        ),
    ] = None
    pool: Annotated[
        str | None,
        dg.Resolver.default(
            description="Of the op that runs the checks, where few may read at once.",
            examples=["duckdb"],
        ),
    ] = None
    name: Annotated[
        str | None,
        dg.Resolver.default(
            description="Of the op that runs the checks, where an asset has those of two schemas."
        ),
    ] = None

    def build(self) -> dg.AssetChecksDefinition:
        """Build the definition of the checks.

        Returns:
            One `dg.multi_asset_check` that can be subset.
        """
        arguments = vars(self).copy()
        return build_rule_checks(arguments.pop("schema_class"), **arguments)


@dataclass
class QuarantineSpec(dg.Resolvable):
    """The quarantine of one asset in the graph, as `dd.build_quarantine_spec` makes it.

    Example:
        ```python
        from dagster_dataframely.components import QuarantineSpec
        from dagster_dataframely.data import OrdersSchema

        spec = QuarantineSpec(schema_class=OrdersSchema, asset="sales/orders").build()
        print(spec.key.to_user_string())
        #> sales/orders_quarantine
        ```
    """

    schema_class: _Schema
    asset: _Asset
    partitions_def: _Partitions = None
    quarantine_layout: Annotated[
        Literal["columns", "list"] | None,
        dg.Resolver.default(
            description="The asset's setting of that name, where `asset` is a key: a column for each "
            "rule, or a list of the rules that a row fails."
        ),
    ] = None

    def build(self) -> dg.AssetSpec:
        """Build the spec.

        Returns:
            A spec under the asset's key with `_quarantine` appended to its last part.
        """
        asset: Any = self.asset
        partitions_def = self.partitions_def
        if isinstance(asset, dg.AssetSpec):
            partitions_def = partitions_def or asset.partitions_def
            asset = asset.key
        return build_quarantine_spec(
            self.schema_class,
            asset,
            partitions_def=partitions_def,
            quarantine_layout=self.quarantine_layout,
        )


class _ScaffoldParams(dg.Model):
    """What `dg scaffold defs` takes beside the path."""

    schema_class: str | None = None
    asset: str | None = None


class _Scaffolder(dg.Scaffolder[_ScaffoldParams]):
    """Writes a file whose comments say what can be written into it."""

    @classmethod
    def get_scaffold_params(cls) -> type[_ScaffoldParams]:
        return _ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[_ScaffoldParams]) -> None:
        if request.scaffold_format == "python":
            dg.scaffold_component(request)
            return
        text = _yaml(request.type_name, request.params.schema_class, request.params.asset)
        if request.append:
            with request.target_path.open("a") as file:
                file.write(f"---\n{text}")
        else:
            (request.target_path / "defs.yaml").write_text(text)


@dg.scaffold_with(_Scaffolder)
@dataclass
class DataframelyComponent(dg.Component, dg.Resolvable):
    """Checks and quarantines, by Dataframely schemas, of assets that exist.

    Written in YAML, where a schema is named by its module and class. A name that does not import, or
    that is something else, raises `InvalidReferenceError`, and Dagster adds the line of the file.

    Args:
        rule_checks: For each entry the checks of a schema on an asset.
        quarantine_specs: For each entry the quarantine of an asset, as an asset in the graph.
    """

    rule_checks: Annotated[
        Sequence[RuleChecks],
        dg.Resolver.default(description="A check for each rule of a schema, on an asset."),
    ] = field(default_factory=list)
    quarantine_specs: Annotated[
        Sequence[QuarantineSpec],
        dg.Resolver.default(description="What a quarantine holds, as an asset in the graph."),
    ] = field(default_factory=list)

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What `dg list components` shows.

        Returns:
            The description and tags of this type of component.
        """
        return dg.ComponentTypeSpec(
            description="Checks and quarantines, by Dataframely schemas, of assets that exist.",
            tags=["asset-checks", "dataframely", "polars"],
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build the checks and specs; Dagster calls this when it loads the code location.

        Returns:
            Definitions without assets that can be materialized.
        """
        return dg.Definitions(
            assets=[entry.build() for entry in self.quarantine_specs],
            asset_checks=[entry.build() for entry in self.rule_checks],
        )


_YAML = """\
type: {type_name}

attributes:
  # A check for each rule of a schema, on an asset that something else makes.
  rule_checks:{rule_checks}
    # - schema_class: my_project.schemas:Orders # module:Class
    #   asset: sales/orders # its key; or module:name of its definition, with its partitions
    #   partitions_def: my_project.partitions:DAYS # where `asset` is a key, if partitioned
    #   cast: true # columns of other dtypes to the schema's first, as a database's have to be
    #   blocking: true # downstream assets of the run do not start while an error rule fails
    #   severities:
    #     amount|min: warn
    #   check_granularity: column # or `rule`, the default, or `schema`
    #   redact: [customer] # columns whose values no check shows
    #   max_failure_samples: 0 # rows of the table that a failed check shows
    #   automation_condition: "{{{{ dg.AutomationCondition.eager() }}}}"

  # What `@dd.asset(..., quarantine=True)` sets aside, as an asset in the graph.
  quarantine_specs: []
    # - schema_class: my_project.schemas:Orders
    #   asset: my_project.defs.orders:orders
"""


def _yaml(type_name: str, schema_class: str | None, asset: str | None) -> str:
    """A file that loads as it stands: an entry only where the command names one."""
    entry = " []"
    if schema_class is not None and asset is not None:
        entry = f"\n    - schema_class: {schema_class}\n      asset: {asset}"
    return _YAML.format(type_name=type_name, rule_checks=entry)
