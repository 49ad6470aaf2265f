"""What is seen of a column of texts, batch by batch."""

import polars as pl

from dagster_dataframely._infer.drops import Meaning, Texts


def test_many_texts_are_no_categories() -> None:
    texts = Texts(Meaning(pl.String()))
    batches = [pl.Series([str(n) for n in range(20)]), pl.Series(["20", "21"]), pl.Series(["22"])]
    found = []
    for batch in batches:
        texts.see(batch, batch)
        found.append(None if texts.distinct is None else len(texts.distinct))
    assert found == [20, None, None]
    assert (texts.texts, texts.lost, texts.missing) == (23, 0, False)
