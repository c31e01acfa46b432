# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Comparing TCP variants
#
# Congestion control algorithms differ in how they take losses that congestion has not caused. A
# sweep over the algorithm and the loss of a line shows by how much.

# %%
import polars as pl

import gridhaul

scenario = gridhaul.Scenario.from_toml("""
title = "A download over a lossy line"
duration = "30 s"
[node]
head = {}
meter = {}
[link.line]
from = "head"
to = "meter"
both = { rate = "3 Mbit/s", delay = "25 ms", loss = { bernoulli = "1 %" } }
[stack.sender]
congestion_control = "reno"
[flow.download]
from = "head"
to = "meter"
stack = "sender"
load = "bulk"
""")
answer = gridhaul.sweep(
    scenario,
    {
        "stack.sender.congestion_control": ["reno", "cubic", "westwood", "vegas"],
        "link.line.both.loss.bernoulli": ["0.1 %", "1 %", "3 %"],
    },
    replications=3,
)

# %%
flows = answer.flows.to_polars().with_columns(
    algorithm=pl.col("stack.sender.congestion_control").cast(pl.String),
    loss=pl.col("link.line.both.loss.bernoulli").cast(pl.String),
    goodput_mbit_per_s=pl.col("goodput_bit_per_s") / 1e6,
)
flows.pivot("loss", index="algorithm", values="goodput_mbit_per_s")

# %% [markdown]
# ## Windows over time

# %%
recorded = gridhaul.run(scenario.set("record.interval", "100 ms"))
windows = recorded.series["windows"].to_polars()
windows.select("time_s", "cwnd_byte", "srtt_s").head()

# %%
assert flows.height == 12
assert windows.height > 100
