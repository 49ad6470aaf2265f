import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class Patients(dy.Schema):
    patient_id = dy.Int64(primary_key=True)
    name = dy.String(nullable=True, min_length=2, metadata={"pii": True})
    weight = dy.Float64(min=0.0, description="kg.")


@dd.asset(Patients, quarantine=True, redact=["weight"])
def patients() -> pl.DataFrame:
    names = ["Ada", None, "B"]
    return pl.DataFrame({"patient_id": [1, 2, 3], "name": names, "weight": [61.0, 70.5, 80.0]})


result = dd.testing.invoke(patients)
for row in result.metadata["dataframely/valid_sample"].records:
    print(dict(row.data))
    #> {'patient_id': 1, 'name': 'redacted', 'weight': 'redacted'}
    #> {'patient_id': 2, 'name': None, 'weight': 'redacted'}

(weight,) = result.metadata["dataframely/valid_stats/numeric"].records[1:]
print(weight.data["count"], weight.data["nulls"], weight.data["max"])
#> 2 0 redacted

print(result.quarantine.select("name", "weight").rows())
#> [('B', 80.0)]
