from collections.abc import Iterator

import dagster as dg
import dataframely as dy
import polars as pl


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dg.asset(check_specs=[dg.AssetCheckSpec("valid", asset="orders")])
def orders() -> Iterator[dg.MaterializeResult[pl.DataFrame]]:
    frame = pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})
    valid, failure = Orders.filter(frame)
    check = dg.AssetCheckResult(
        passed=len(failure) == 0,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"failures": failure.counts()},
    )
    yield dg.MaterializeResult(value=valid, check_results=[check])


result = dg.materialize([orders], resources={"io_manager": dg.mem_io_manager})
(check,) = result.get_asset_check_evaluations()
print(result.output_for_node("orders").rows(), check.metadata["failures"].value)
#> [(1, 9.5)] {'amount|min': 1}
