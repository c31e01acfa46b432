"""Frames: tables by the Arrow PyCapsule interface."""

from __future__ import annotations

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


def test_unknown_values_are_null(answer: gridhaul.Answer) -> None:
    assert answer.flows["completion_time_s"] == [None, None]
    assert answer.flows.to_polars()["completion_time_s"].null_count() == 2


def test_a_frame_is_read_any_number_of_times(answer: gridhaul.Answer) -> None:
    flows = answer.flows
    assert pl.DataFrame(flows).equals(pl.DataFrame(flows))


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
