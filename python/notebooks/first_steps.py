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
# # First steps
#
# A meter reports to a head over a lossy feeder. How long do its reports take, and which change
# helps most: a faster line, or less loss?

# %%
import gridhaul

scenario = gridhaul.Scenario.from_toml("""
title = "Reports of a meter"
duration = "10 min"
[node]
meter = {}
head = {}
[link.feeder]
from = "meter"
to = "head"
both = { rate = "16 kbit/s", delay = "40 ms", loss = { bernoulli = "5 %" } }
[flow.reports]
from = "meter"
to = "head"
load.periodic = { size = "400 B", every = "2 s" }
""")

# %% [markdown]
# The simulator and the analytical model answer the same scenario. Where they agree, the number can
# be trusted.

# %%
answer = gridhaul.run(scenario, on=["sim", "model"], replications=5)
answer

# %%
answer.flows.to_polars().select("backend", "delay_mean_s", "delay_mean_s_ci95", "delay_p98_s")

# %% [markdown]
# ## One change at a time

# %%
faster = scenario.set("link.feeder.both.rate", "64 kbit/s")
cleaner = scenario.set("link.feeder.both.loss", {"bernoulli": "1 %"})
answers = [gridhaul.run(each, replications=5) for each in (scenario, faster, cleaner)]
delays = [answer.flows["delay_mean_s"][0] for answer in answers]
dict(zip(["as is", "four times the rate", "a fifth of the loss"], delays, strict=True))

# %% [markdown]
# The comparison tests whether a difference is larger than chance.

# %%
comparison = gridhaul.compare(*answers, labels=["as is", "faster", "cleaner"])
[(row["metric"], [other["result"] for other in row["others"]]) for row in comparison.rows]

# %%
assert all(delay is not None and delay > 0.04 for delay in delays)
