"""Whether too many rows went into a quarantine."""

import dagster as dg

from warehouse.defs.silver.flights import flights
from warehouse.defs.silver.weather import weather

MAXIMUM = 0.001
"""One row in a thousand."""


def build_error_share_check(asset: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    """A check of what the latest materialization, of each partition, says about its rows."""

    @dg.asset_check(
        asset=asset,
        name="error_share",
        description=f"At most {MAXIMUM:.1%} of the rows, in each partition, are quarantined.",
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        shares = latest_error_shares(context.instance, asset)
        above = {partition: share for partition, share in shares.items() if share > MAXIMUM}
        return dg.AssetCheckResult(
            passed=not above,
            metadata={
                "largest_share": max(shares.values(), default=0.0),
                "above": ", ".join(
                    f"{partition} {share:.2%}"
                    for partition, share in sorted(above.items(), key=lambda item: -item[1])
                ),
            },
        )

    return check


def latest_error_shares(
    instance: dg.DagsterInstance, asset: dg.AssetsDefinition
) -> dict[str, float]:
    """The share of error rows by partition, 0 to 1; skipped partitions are left out."""
    partitions_def = asset.partitions_def
    partitions = [None] if partitions_def is None else partitions_def.get_partition_keys()
    shares = {}
    for partition in partitions:
        records = dg.AssetRecordsFilter(
            asset.key, asset_partitions=None if partition is None else [partition]
        )
        for record in instance.fetch_materializations(records, limit=1).records:
            materialization = record.asset_materialization
            if materialization is not None:
                share = materialization.metadata["dataframely/error_share"].value
                shares[partition or "all"] = float(str(share))
    return shares


flights_error_share = build_error_share_check(flights)
weather_error_share = build_error_share_check(weather)
