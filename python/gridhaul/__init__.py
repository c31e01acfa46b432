"""TCP for power grids: one scenario, answered by simulation, equations and real kernels.

Example:
    >>> import gridhaul
    >>> scenario = gridhaul.Scenario.from_toml('''
    ... title = "A download"
    ... duration = "2 s"
    ... [node]
    ... head = {}
    ... meter = {}
    ... [link.feeder]
    ... from = "head"
    ... to = "meter"
    ... both = { rate = "1 Mbit/s", delay = "10 ms" }
    ... [flow.download]
    ... from = "head"
    ... to = "meter"
    ... load = "bulk"
    ... ''')
    >>> answer = gridhaul.sweep(scenario, {"link.feeder.both.delay": ["10 ms", "40 ms"]})
    >>> answer.flows["name"]
    ['download', 'download']
    >>> [round(goodput / 1e6, 1) for goodput in answer.flows["goodput_bit_per_s"]]
    [0.9, 0.9]

"""

from gridhaul._answer import Answer, Series, Warning, read
from gridhaul._chart import Chart
from gridhaul._errors import (
    Diagnostic,
    GridhaulError,
    InputError,
    InternalError,
    Interrupted,
    ScenarioError,
    SessionError,
)
from gridhaul._frame import Cell, Frame
from gridhaul._measure import measure
from gridhaul._native import __version__
from gridhaul._run import (
    Comparison,
    Plan,
    Progress,
    Reproduction,
    compare,
    paper,
    plan,
    run,
    sweep,
)
from gridhaul._scenario import Scenario
from gridhaul._session import Message, Session, Snapshot
from gridhaul._supply import Supply
from gridhaul._values import Value

__all__ = [
    "Answer",
    "Cell",
    "Chart",
    "Comparison",
    "Diagnostic",
    "Frame",
    "GridhaulError",
    "InputError",
    "InternalError",
    "Interrupted",
    "Message",
    "Plan",
    "Progress",
    "Reproduction",
    "Scenario",
    "ScenarioError",
    "Series",
    "Session",
    "SessionError",
    "Snapshot",
    "Supply",
    "Value",
    "Warning",
    "__version__",
    "compare",
    "measure",
    "paper",
    "plan",
    "read",
    "run",
    "sweep",
]
