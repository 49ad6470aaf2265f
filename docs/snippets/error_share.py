import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(Orders, quarantine=True)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


@dg.asset_check(asset=orders, description="At most one row in a hundred is an error row.")
def few_error_rows(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    event = context.instance.get_latest_materialization_event(orders.key)
    assert event is not None
    assert event.asset_materialization is not None
    share = event.asset_materialization.metadata["dataframely/error_share"].value
    return dg.AssetCheckResult(passed=share <= 0.01, metadata={"error_share": share})


result = dg.materialize(
    [orders, few_error_rows],
    resources={"io_manager": dg.mem_io_manager},
)
print([check.check_name for check in result.get_asset_check_evaluations() if not check.passed])
#> ['dy_rule__amount__min', 'few_error_rows']
