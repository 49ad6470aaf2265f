"""Definition time: many assets, each with many rules, as a code location loads them."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd
from benchmarks.programs import Job, Run

COLUMNS = 10
"""Each has three rules: no nulls, a lowest and a highest value."""


def library(job: Job, *, assets: int = 200, schemas: int | None = None) -> Run:
    """This library's decorator; the schemas, one for each asset, are there before the clock starts."""
    classes = [_schema(number) for number in range(schemas or assets)]

    def define(number: int) -> dg.AssetsDefinition:
        return dd.asset(classes[number % len(classes)], name=f"asset_{number}")(_body)

    return _load(define, assets)


def plain(job: Job, *, assets: int = 200) -> Run:
    """Dagster's decorator, with as many check specs."""
    names = [spec.name for spec in dd.wiring.check_specs(_schema(0), asset="example")]

    def define(number: int) -> dg.AssetsDefinition:
        name = f"asset_{number}"
        specs = [dg.AssetCheckSpec(check, asset=name) for check in names]
        definition: dg.AssetsDefinition = dg.asset(name=name, check_specs=specs)(_checked_body)
        return definition

    return _load(define, assets)


def _body() -> pl.DataFrame:
    return pl.DataFrame()


def _checked_body() -> Iterator[Any]:
    yield from ()


def _schema(number: int) -> type[dy.Schema]:
    columns = {f"column_{name}": dy.Int64(min=0, max=number + 1) for name in range(COLUMNS)}
    metaclass: Any = type(dy.Schema)
    schema: type[dy.Schema] = metaclass(f"Schema{number}", (dy.Schema,), columns)
    return schema


def _load(define: Callable[[int], dg.AssetsDefinition], assets: int) -> Run:
    def run() -> dict[str, float]:
        start = time.monotonic()
        definitions = [define(number) for number in range(assets)]
        decorated = time.monotonic() - start
        dg.Definitions.validate_loadable(dg.Definitions(assets=definitions))
        checks = sum(len(list(definition.check_specs)) for definition in definitions)
        return {"decorator_seconds": decorated, "checks": checks}

    # A collection of all objects takes a tenth of a second: each side begins just after one.
    gc.collect()
    return run
