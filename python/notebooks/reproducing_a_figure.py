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
# # Reproducing a figure
#
# Figure 5 of Estevez and Céspedes (IEEE SmartGridComm 2015): the rate of a file over a broadband
# power line of four hops, with and without reflecting proxies at the regenerators. The scenarios of
# the paper are in the repository. `gridhaul.paper("plc")` reproduces all its figures and checks
# them; this notebook computes the curves of one of them by the equations of the paper.

# %%
from pathlib import Path

import polars as pl

import gridhaul

papers = Path("../../papers/plc")
curves = {"no proxies": "lines_without.toml", "three proxies": "lines_proxies.toml"}
answers = {label: gridhaul.run(papers / file, on="paper-model") for label, file in curves.items()}


# %%
def broadband(label: str, answer: gridhaul.Answer) -> pl.DataFrame:
    """Return the rates of the file on the broadband line, by loss."""
    rows = answer.flows.to_polars().filter(
        pl.col("link.hop4.power_line.class").cast(pl.String) == "broadband"
    )
    return rows.select(
        curve=pl.lit(label),
        loss=pl.col("link.hop4.forward.loss.bernoulli").cast(pl.String),
        rate_mbit_per_s=pl.col("transfer_rate_bit_per_s") / 1e6,
    )


figure = pl.concat([broadband(label, answer) for label, answer in answers.items()])
table = figure.pivot("curve", index="loss", values="rate_mbit_per_s")
table

# %% [markdown]
# Proxies repair a loss over one hop instead of four, so that the curve with proxies is above the
# other one wherever losses limit the rate.

# %%
assert (table["three proxies"] >= table["no proxies"]).all()

# %%
answers["three proxies"].charts
