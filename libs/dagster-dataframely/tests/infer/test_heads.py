"""What is odd about a CSV file is found at its beginning, in no time."""

import gzip
from pathlib import Path

import dataframely as dy
import pytest
from support.inferred import Run, schema_of

TEXT = "id;näme;amount\n1;ä;1.5\n2;ö;2.5\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_separator_is_that_of_the_first_line(
    tmp_path: Path, printed: Run, separator: str, *, packed: bool
) -> None:
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    data = f'"x;,;,;,\t\t|"{separator}id\na{separator}1\n'.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    source = printed(path)
    assert list(schema_of(source).columns()) == ["x;,;,;,\t\t|", "id"]
    assert ("separator=" in source) is (separator != ",")


def test_a_separator_that_is_named_wins(tmp_path: Path, printed: Run) -> None:
    (tmp_path / "a.csv").write_text("a;b;c,d\n1;2;3,4\n")
    assert list(schema_of(printed(tmp_path / "a.csv", "--separator", ",")).columns()) == [
        "a;b;c",
        "d",
    ]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_an_encoding_is_named(tmp_path: Path, printed: Run, refused: Run, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.encode(encoding))
    named = "`--encoding utf-16`" if encoding == "utf-16" else "`--encoding latin-1`"
    assert named in refused(path)
    source = printed(path, "--encoding", encoding)
    schema = schema_of(source)
    assert list(schema.columns()) == ["id", "näme", "amount"]
    assert isinstance(schema.columns()["amount"], dy.Float64)
    assert ".decode(" in source


def test_a_file_that_is_not_of_its_encoding(tmp_path: Path, refused: Run) -> None:
    (tmp_path / "a.csv").write_bytes("ä\n".encode("latin-1"))
    assert "it is not utf-8, at byte 0" in refused(tmp_path / "a.csv", "--encoding", "utf8")


def test_lines_that_end_with_cr_alone_are_refused(tmp_path: Path, refused: Run) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\r1,2\r" * 1_000_000)
    assert "its lines end with CR alone" in refused(tmp_path / "a.csv")


def test_an_endless_line_is_refused(tmp_path: Path, refused: Run) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 20_000_000)
    assert "its first line is longer than 1,000,000 bytes" in refused(tmp_path / "a.csv")


def test_a_line_without_an_end_is_a_header(tmp_path: Path, printed: Run) -> None:
    (tmp_path / "a.csv").write_bytes("a,ä".encode())
    assert list(schema_of(printed(tmp_path / "a.csv")).columns()) == ["a", "ä"]


def test_many_columns_are_looked_at_on_request(tmp_path: Path, printed: Run, refused: Run) -> None:
    header = ",".join(f"c{number}" for number in range(1_001))
    (tmp_path / "a.csv").write_text(f"{header}\n{header}\n")
    said = refused(tmp_path / "a.csv")
    assert "it has 1,001 columns: `--max-columns 1001` looks at them" in said
    assert (
        len(
            schema_of(
                printed(tmp_path / "a.csv", "--max-columns", 1_001, "--schema-only")
            ).columns()
        )
        == 1_001
    )
