"""Uses an installed wheel as a user would. `cargo xtask wheel --check` runs it on old machines."""

import os
import platform
import sys

import gridhaul

scenario = gridhaul.Scenario.from_dict({
    "title": "Check of the wheel",
    "duration": "20 s",
    "node": {"meter": {}, "head": {}},
    "link": {
        "line": {
            "from": "meter",
            "to": "head",
            "both": {"rate": "1 Mbit/s", "delay": "10 ms", "loss": {"bernoulli": "1 %"}},
        }
    },
    "flow": {"archive": {"from": "meter", "to": "head", "load": "bulk"}},
})
answer = gridhaul.run(scenario, on=["sim", "model"], replications=2)
goodputs = answer.flows["goodput_bit_per_s"]
assert len(goodputs) == 2
assert all(100_000 < goodput < 1_000_000 for goodput in goodputs)
assert "<svg" in answer.report()

library = os.confstr("CS_GNU_LIBC_VERSION")
print(f"gridhaul {gridhaul.__version__}, Python {platform.python_version()}, {library}: works")
sys.exit(0)
