"""Frames: tables by the Arrow PyCapsule interface."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gridhaul
from gridhaul import Scenario


@pytest.fixture(scope="module")
def answer() -> gridhaul.Answer:
    from conftest import DOWNLOAD

    scenario = Scenario.from_toml(DOWNLOAD).set("record.interval", "10 ms")
    vary = {"link.feeder.both.delay": ["10 ms", "40 ms"]}
    return gridhaul.sweep(scenario, vary, replications=3)


def test_four_libraries_read_the_same_frame(answer: gridhaul.Answer) -> None:
    flows = answer.flows
    goodput = flows["goodput_bit_per_s"]
    assert flows.to_polars()["goodput_bit_per_s"].to_list() == goodput
    assert flows.to_pandas()["goodput_bit_per_s"].tolist() == goodput
    assert flows.to_arrow()["goodput_bit_per_s"].to_pylist() == goodput
    query = duckdb.sql('select goodput_bit_per_s from flows order by "point"')
    assert query is not None
    found = query.fetchall()
    assert [row[0] for row in found] == goodput
    assert pa.table(flows).schema.field("point").type == pa.uint64()
    assert isinstance(flows.to_polars(), pl.DataFrame)
    assert isinstance(flows.to_pandas(), pd.DataFrame)


def test_frames_have_names_sizes_and_columns(answer: gridhaul.Answer) -> None:
    assert len(answer.flows) == 2
    assert answer.flows.shape == (2, len(answer.flows.columns))
    assert list(answer.flows) == answer.flows.columns
    assert set(answer.links["name"]) == {"feeder.forward", "feeder.reverse"}
    assert repr(answer.flows).startswith("<gridhaul.Frame 2 rows, ")
    assert "<table>" in answer.flows._repr_html_()
    with pytest.raises(KeyError, match="goodput"):
        answer.flows["goodput"]


def test_replications_have_a_row_each_without_a_key(answer: gridhaul.Answer) -> None:
    replications = answer.replications.to_polars()
    downloads = replications.filter(pl.col("name") == "download")
    assert downloads.select("point", "replication").rows() == [
        (point, number) for point in range(2) for number in range(3)
    ]
    means = downloads.group_by("point").agg(pl.col("goodput_bit_per_s").mean()).sort("point")
    assert means["goodput_bit_per_s"].to_list() == pytest.approx(answer.flows["goodput_bit_per_s"])
    # The stored form of the answer has the means only, as that of the command.
    assert '"replications": {' not in answer.to_json()


def test_stored_means_have_no_replications(answer: gridhaul.Answer, tmp_path: Path) -> None:
    answer.save(tmp_path / "answer.json")
    with pytest.raises(gridhaul.InputError, match=r"record\.each_replication"):
        _ = gridhaul.read(tmp_path / "answer.json").replications
    recorded = Scenario.from_toml(answer_text()).set("record.each_replication", True)
    each = gridhaul.run(recorded, replications=3)
    each.save(tmp_path / "answer.json")
    stored = gridhaul.read(tmp_path / "answer.json")
    assert stored.replications.to_polars().equals(each.replications.to_polars())


def test_parameters_are_numbers_with_units(answer: gridhaul.Answer) -> None:
    parameters = answer.parameters.to_dict()
    assert parameters["key"] == ["link.feeder.both.delay"] * 2
    assert parameters["value"] == ["10 ms", "40 ms"]
    assert parameters["number"] == [0.01, 0.04]
    assert parameters["unit"] == ["s", "s"]
    column = parameters["column"][0]
    assert column == "link.feeder.both.delay_s"
    assert answer.flows[column] == [0.01, 0.04]
    assert answer.points[column] == [0.01, 0.04]
    assert answer.points["replications_count"] == [3, 3]


def test_tables_are_those_of_the_export_command(
    answer: gridhaul.Answer, command: str, tmp_path: Path
) -> None:
    file, out = tmp_path / "download.toml", tmp_path / "out"
    swept = '\n[[sweep]]\nvary."link.feeder.both.delay" = ["10 ms", "40 ms"]\n'
    file.write_text(answer_text() + swept)
    options = ["--replications", "3", "--each-replication", "--quiet", "--out", str(out)]
    subprocess.run([command, "run", file, *options], check=True, stdout=subprocess.DEVNULL)
    for table in ["flows", "links", "parameters", "points", "replications"]:
        export = [command, "export", str(out), "--table", table, "--json", "--quiet"]
        printed = subprocess.run(export, check=True, capture_output=True, text=True).stdout
        rows = [
            {name: value for name, value in row.items() if name != "answer"}
            for row in json.loads(printed)
        ]
        frame = getattr(answer, table).to_polars().drop("answer")
        assert frame.select(rows[0].keys()).to_dicts() == rows, table


def test_series_are_those_of_the_files_of_the_command(
    answer: gridhaul.Answer, command: str, tmp_path: Path
) -> None:
    file, out = tmp_path / "download.toml", tmp_path / "out"
    swept = '\n[[sweep]]\nvary."link.feeder.both.delay" = ["10 ms", "40 ms"]\n'
    file.write_text(answer_text() + swept)
    options = ["--replications", "3", "--series", "10 ms", "--quiet", "--out", str(out)]
    subprocess.run([command, "run", file, *options], check=True, stdout=subprocess.DEVNULL)
    assert {path.stem for path in out.glob("*.parquet")} == set(answer.series)
    for name in answer.series:
        written = pl.read_parquet(out / f"{name}.parquet")
        frame = answer.series[name].to_polars()
        assert frame.columns == written.columns
        assert frame.cast(written.schema).equals(written), name
    numbers = answer.series["windows-1"]
    assert set(numbers["link.feeder.both.delay_s"]) == {0.04}
    assert set(numbers["replication"]) == {0}


def test_members_of_a_group_have_rows(download: Scenario) -> None:
    group = download.set("flow.download.count", 3).set("record.members", ["download"])
    answer = gridhaul.run(group, replications=2)
    members = answer.members
    assert members["member"] == [0, 1, 2, 0, 1, 2]
    assert members["replication"] == [0, 0, 0, 1, 1, 1]
    assert all(isinstance(goodput, float) for goodput in members["goodput_bit_per_s"])
    assert len(gridhaul.run(download).members) == 0


def test_unknown_values_are_null(answer: gridhaul.Answer) -> None:
    assert answer.flows["completion_time_s"] == [None, None]
    assert answer.flows.to_polars()["completion_time_s"].null_count() == 2


def test_a_frame_is_read_any_number_of_times(answer: gridhaul.Answer) -> None:
    flows = answer.flows
    assert pl.DataFrame(flows).equals(pl.DataFrame(flows))


def test_a_notebook_reads_the_rows_that_it_shows(answer: gridhaul.Answer) -> None:
    class Counted:
        def __init__(self, table: Any) -> None:
            self._table = table
            self.columns = table.columns
            self.cells = 0

        def __len__(self) -> int:
            return len(self._table)

        def column(self, name: str, rows: int | None = None) -> list[Any]:
            cells: list[Any] = self._table.column(name, rows)
            self.cells += len(cells)
            return cells

    series = answer.series["windows-1"]
    counted: Any = Counted(series._inner)
    shown = gridhaul.Frame(counted)._repr_html_()
    assert f"<p>{len(series)} rows" in shown
    assert len(series) > 100
    # Once to find columns with values, and once to show them.
    assert counted.cells <= 2 * 10 * len(series.columns)
    assert series._inner.column("time_s", 3) == series["time_s"][:3]


def test_series_are_frames_by_name(answer: gridhaul.Answer) -> None:
    assert "windows-1" in answer.series
    windows = answer.series["windows-1"].to_polars()
    assert windows.height > 100
    assert windows["time_s"].is_sorted()
    assert windows["flow"].unique().to_list() == ["download"]
    assert windows["link.feeder.both.delay"].unique().to_list() == ["40 ms"]
    with pytest.raises(KeyError, match="recorded: windows-0"):
        answer.series["windows"]
    without = gridhaul.run(Scenario.from_toml(answer_text()))
    with pytest.raises(KeyError, match=r"set record\.interval"):
        without.series["windows"]


def answer_text() -> str:
    from conftest import DOWNLOAD

    return DOWNLOAD


def test_a_stream_outlives_its_answer() -> None:
    reader = pa.RecordBatchReader.from_stream(gridhaul.run(Scenario.from_toml(answer_text())).flows)
    assert reader.read_all().num_rows == 1
