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
# # Sizing a district
#
# How many meters can share one power line, if 98 % of the reports must arrive within 10 s? A sweep
# shows the limit, and a plan chooses the cheapest line for a given number.

# %%
import gridhaul

TEXT = """
title = "Meters on one power line"
duration = "5 min"
warmup = "1 min"
[node]
meter = { count = 50 }
head = {}
[link.line]
from = "meter"
to = "head"
shared = true
both = { rate = "64 kbit/s", delay = "15 ms", queue = "30 packets" }
[flow.reports]
from = "meter"
to = "head"
deadline = "10 s"
load.poisson = { size = "300 B", every = "30 s" }
"""
scenario = gridhaul.Scenario.from_toml(TEXT)
meters = [50, 100, 200, 300]
answer = gridhaul.sweep(scenario, {"node.meter.count": meters}, replications=2)

# %%
flows = answer.flows.to_pandas()
flows[["node.meter.count", "delay_p98_s", "message_loss_ratio"]]

# %% [markdown]
# ## The cheapest line for 200 meters

# %%
plan = gridhaul.plan(
    gridhaul.Scenario.from_toml(
        TEXT.replace("count = 50", "count = 200")
        + """
[plan]
choose = { "link.line.both.rate" = ["16 kbit/s", "32 kbit/s", "64 kbit/s", "128 kbit/s"] }
cost = { "link.line.both.rate" = 1000 }
limit.reports.deadline = true
"""
    ),
    verify=None,
)
print(plan.summary)

# %%
assert plan.choice is not None
plan.charts
