from typing import Annotated

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Plane(dy.Schema):
    tailnum = dy.String(primary_key=True)


class Flight(dy.Schema):
    flight = dy.Int64(primary_key=True)
    tailnum = dy.String(nullable=True)


class Flying(dy.Collection):
    flights: dy.LazyFrame[Flight]
    planes: Annotated[dy.LazyFrame[Plane], dy.CollectionMember(ignored_in_filters=True)]

    @dy.filter()
    def plane_is_known(self) -> pl.LazyFrame:
        """A flight has a tail number, and the plane is there."""
        return self.flights.join(self.planes, on="tailnum", how="semi")


@dg.asset
def flights() -> pl.DataFrame:
    return pl.DataFrame({"flight": [1, 2, 3], "tailnum": ["N14228", "N0EG2", None]})


@dg.asset
def planes() -> pl.DataFrame:
    return pl.DataFrame({"tailnum": ["N14228"]})


checks = dd.build_collection_checks(
    Flying, members={"flights": flights, "planes": planes}, severity="warn"
)

result = dg.materialize([flights, planes, checks], resources={"io_manager": dg.mem_io_manager})
for check in result.get_asset_check_evaluations():
    failed = check.metadata["dy_failed_count"].value
    print(check.asset_key.path[-1], check.check_name, check.severity.name, failed)
#> flights dy_filter__plane_is_known WARN 2
