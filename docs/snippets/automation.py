import datetime as dt

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Orders(dy.Schema):
    id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


@dd.asset(
    Orders,
    quarantine=True,
    automation_condition=dg.AutomationCondition.on_cron("0 6 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=dt.timedelta(hours=26)),
)
def orders() -> pl.DataFrame:
    return pl.DataFrame({"id": [1, 2], "amount": [9.5, -1.0]})


updated = dg.AutomationCondition.any_deps_updated()
columns_fit = dg.AutomationCondition.all_deps_blocking_checks_passed()
rule_failed = dg.AutomationCondition.any_deps_match(
    dg.AutomationCondition.any_checks_match(dg.AutomationCondition.check_failed())
)


@dg.asset(automation_condition=updated & columns_fit)
def report(orders: pl.DataFrame) -> float:
    return float(orders["amount"].sum())


@dg.asset(deps=[orders], automation_condition=rule_failed)
def alert() -> None: ...


defs = dg.Definitions(assets=[orders, report, alert], resources={"io_manager": dg.mem_io_manager})
with dg.DagsterInstance.ephemeral() as instance:
    everything = dg.AssetSelection.all()
    first = dg.evaluate_automation_conditions(defs, instance, asset_selection=everything)
    job = defs.resolve_implicit_global_asset_job_def()
    job.execute_in_process(instance=instance, asset_selection=[orders.key])
    second = dg.evaluate_automation_conditions(
        defs, instance, asset_selection=everything, cursor=first.cursor
    )
    for asset in (report, alert):
        print(asset.key.to_user_string(), second.get_num_requested(asset.key))
        #> report 1
        #> alert 1
