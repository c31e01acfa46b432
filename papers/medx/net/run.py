"""
Runs the coloured Petri net of paper `medx`. See README.md.

    python papers/medx/net/run.py                 results.csv, same.csv and delays.csv
    python papers/medx/net/run.py vary            sensitivity.csv
    python papers/medx/net/run.py parameters      alpha_beta.csv
    python papers/medx/net/run.py space           all states of small instances
    python papers/medx/net/run.py draw            the pictures
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

try:
    import snakes  # noqa: F401
except ImportError:
    sys.exit("the package SNAKES is missing: python -m pip install -r papers/medx/net/requirements.txt")

from medx_net import hierarchy
from medx_net import parameters as files
from medx_net.experiment import CAUSES, Run, run, same_segments
from medx_net.net import PROTOCOLS, Net
from medx_net.parameters import Parameters
from medx_net.render import overview, picture
from medx_net.space import Bounds, bounded, explore

HERE = Path(__file__).resolve().parent
RECOVERIES = ("new_reno", "sack", "each")
SEEDS = {"new_reno": 100, "sack": 20, "each": 20}
VARIED_SEEDS = 3
VARIED_RECOVERIES = ("new_reno", "each")
GRID_SEEDS = 3
CLASSIFIED = [f"{cause}_classified_{answer}" for cause in CAUSES for answer in ("congestion", "error")]
ALPHAS = (0.2, 0.5, 0.8, 0.95)
BETAS = (1.0, 1.2, 1.5, 2.0)
GRID_CHANNEL = {"channel.error": 0.02, "channel.fifo": 20, "sender.recovery": "sack"}
"""Both kinds of losses occur: few errors, and a buffer that overflows."""
MOBILITY: dict[str, dict[str, Any]] = {
    "fixed": {},
    "interval": {"channel.spread": 2_000},
    "routes": {"channel.route_period": 250_000},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    options = _options(arguments)
    try:
        parameters = files.load().replaced(_changes(options.set))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    options.into.mkdir(parents=True, exist_ok=True)  # before the runs, which take minutes
    match options.what:
        case "results":
            runs = results(parameters, options.seeds)
            rows = [{"recovery": recovery, **done.row()} for recovery, done in runs]
            _write(options.into / "results.csv", rows)
            print(table(rows))
            both = same(runs)
            _write(options.into / "same.csv", both)
            print(table_of_same(both))
            _write(options.into / "delays.csv", delays(parameters))
        case "vary":
            _write(options.into / "sensitivity.csv", sensitivity(parameters, options.seeds or VARIED_SEEDS))
        case "parameters":
            _write(options.into / "alpha_beta.csv", alpha_beta(parameters, options.seeds or GRID_SEEDS))
        case "space":
            return _space(parameters)
        case "draw":
            for protocol in PROTOCOLS:
                file = options.into / f"net-{protocol}.svg"
                file.write_text(picture(Net(parameters, protocol, seed=1)), encoding="utf-8")
                print(file)
            file = options.into / "net-pages.svg"
            file.write_text(overview(hierarchy.of(Net(parameters, "medx", seed=1))), encoding="utf-8")
            print(file)
    return 0


def results(parameters: Parameters, seeds: int | None) -> list[tuple[str, Run]]:
    """One run for each recovery, protocol and seed. The default number of seeds depends on the recovery (SEEDS)."""
    jobs = [
        (parameters.replaced({"sender.recovery": recovery}), protocol, seed)
        for recovery in RECOVERIES
        for protocol in PROTOCOLS
        for seed in range(1, (seeds or SEEDS[recovery]) + 1)
    ]
    return [(job[0]["sender.recovery"], done) for job, done in zip(jobs, _all(jobs), strict=True)]


def same(runs: list[tuple[str, Run]]) -> list[dict[str, Any]]:
    """Figure 4, third interpretation: from generation to delivery, for the segments that both protocols deliver."""
    standard, medx = ({(r, run.seed): run for r, run in runs if run.protocol == protocol} for protocol in PROTOCOLS)
    rows = []
    for recovery, seed in standard:
        count, of_standard, of_medx = same_segments(standard[recovery, seed], medx[recovery, seed])
        ages = {"standard_units": round(of_standard), "medx_units": round(of_medx)}
        rows.append({"recovery": recovery, "seed": seed, "segments": count, **ages})
    return rows


def table_of_same(rows: list[dict[str, Any]]) -> str:
    """Means over the seeds, and the number of seeds in which MEDX was faster."""
    lines = ["recovery: the same segments; mean age in units standard, medx; seeds in which medx was faster"]
    for recovery in RECOVERIES:
        own = [row for row in rows if row["recovery"] == recovery]
        segments, slow, fast = (mean(row[name] for row in own) for name in ("segments", "standard_units", "medx_units"))
        faster = sum(row["medx_units"] < row["standard_units"] for row in own)
        lines.append(f"{recovery}: {segments:.0f}; {slow:.0f}, {fast:.0f}; {faster} of {len(own)}")
    return "\n".join(lines)


def table(rows: list[dict[str, Any]]) -> str:
    """Means of the results, and the ratio of delivered segments with its 95 % confidence interval."""
    lines = ["recovery: segments standard, medx; ratio; mean delay in units standard, medx"]
    for recovery in RECOVERIES:
        delivered, waited = (
            [
                [int(row[column]) for row in rows if (row["recovery"], row["protocol"]) == (recovery, protocol)]
                for protocol in PROTOCOLS
            ]
            for column in ("segments_delivered", "mean_delay_units")
        )
        low, high = _interval(*delivered)
        few, many = map(mean, delivered)
        lines.append(
            f"{recovery}: {few:.0f}, {many:.0f}; {many / max(1.0, few):.2f} ({low:.1f} to {high:.1f}); "
            f"{mean(waited[0]):.0f}, {mean(waited[1]):.0f}"
        )
    return "\n".join(lines)


def _interval(below: list[int], above: list[int]) -> tuple[float, float]:
    """Bootstrap interval over the seeds."""
    generator = random.Random(1)

    def resampled_mean(values: list[int]) -> float:
        return mean(generator.choices(values, k=len(values)))

    ratios = sorted(resampled_mean(above) / max(1.0, resampled_mean(below)) for _ in range(4000))
    return ratios[100], ratios[-101]


def delays(parameters: Parameters) -> list[dict[str, Any]]:
    """Figure 4: delay and age of the first copy of each segment, in one run of each protocol."""
    rows = []
    parameters = parameters.replaced({"sender.recovery": "each"})
    for done in _all([(parameters, protocol, 1) for protocol in PROTOCOLS]):
        for at, number, delay in done.first_arrivals():
            age = at - done.written[number]
            rows.append(
                {"protocol": done.protocol, "segment": number, "at_units": at, "delay_units": delay, "age_units": age}
            )
    return rows


def sensitivity(parameters: Parameters, seeds: int) -> list[dict[str, Any]]:
    """Means with one unstated parameter changed at a time, for the weakest and the strongest recovery."""
    cases: list[dict[str, Any]] = [{}]
    for name, tried in parameters.tried.items():
        if name != "sender.recovery":
            cases.extend(_together(name, value) for value in tried if value != parameters[name])
    rows = []
    for recovery in VARIED_RECOVERIES:
        for case in cases:
            changed = parameters.replaced({"sender.recovery": recovery, **case})
            jobs = [(changed, protocol, seed) for protocol in PROTOCOLS for seed in range(1, seeds + 1)]
            done = list(_all(jobs))
            means = {protocol: _means([run for run in done if run.protocol == protocol]) for protocol in PROTOCOLS}
            ratio = means["medx"]["segments_delivered"] / max(1.0, means["standard"]["segments_delivered"])
            row: dict[str, Any] = {"recovery": recovery, "changed": _named(case), "seeds": seeds}
            row["ratio"] = round(ratio, 2)
            for protocol in PROTOCOLS:
                row |= {f"{protocol}_{name}": round(value) for name, value in means[protocol].items()}
            rows.append(row)
            print(row["recovery"], row["changed"], row["ratio"], flush=True)
    return rows


def alpha_beta(parameters: Parameters, seeds: int) -> list[dict[str, Any]]:
    """Classifications of MEDX for each alpha and beta, with fixed delays, interval delays and route changes."""
    rows = []
    for mobility, changes in MOBILITY.items():
        cases = [(alpha, beta) for alpha in ALPHAS for beta in BETAS]
        jobs = [
            (parameters.replaced({**GRID_CHANNEL, **changes, "medx.alpha": alpha, "medx.beta": beta}), "medx", seed)
            for alpha, beta in cases
            for seed in range(1, seeds + 1)
        ]
        done = list(_all(jobs))
        for index, (alpha, beta) in enumerate(cases):
            runs = [run.row() for run in done[index * seeds : (index + 1) * seeds]]
            row: dict[str, Any] = {"mobility": mobility, "alpha": alpha, "beta": beta, "seeds": seeds}
            row["segments_delivered"] = round(mean(run["segments_delivered"] for run in runs))
            for name in CLASSIFIED:
                row[name] = sum(run[name] for run in runs)
            rows.append(row)
            print(*row.values(), flush=True)
    return rows


def _together(name: str, value: Any) -> dict[str, Any]:
    """The delays before and after the router and on the reverse path are varied together."""
    if name == "channel.before":
        return {name: value, "channel.after": value, "channel.reverse": 2 * value}
    return {name: value}


def _named(case: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in case.items()) or "nothing"


def _means(runs: list[Run]) -> dict[str, float]:
    rows = [run.row() for run in runs]
    names = ("segments_delivered", "mean_delay_units", "losses_error", "losses_queue", "classified_congestion")
    return {name: mean(row[name] for row in rows) for name in names}


def _space(parameters: Parameters) -> int:
    """Prints the results of the state spaces. Exit code 1 if a property does not hold."""
    wrong = False
    for bounds in (Bounds(), Bounds(segments=2, early_timeouts=1)):
        for recovery in ("new_reno", "each"):
            for protocol in PROTOCOLS:
                small = bounded(parameters.replaced({"sender.recovery": recovery}), protocol, bounds)
                findings = explore(small, bounds)
                what = f"{protocol}, {recovery}, {bounds}"
                print(f"{what}: {findings.states} states, {findings.edges} edges, {findings.final} final")
                for fault in findings.faults[:5]:
                    print(f"  {fault}")
                wrong |= bool(findings.faults)
    return int(wrong)


def _all(jobs: list[tuple[Parameters, str, int]]) -> Iterable[Run]:
    """Runs the jobs on two processors and returns the results in order."""
    with ProcessPoolExecutor(2) as pool:
        yield from pool.map(run, *zip(*jobs, strict=True))


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    if not rows:
        print(f"{file}: not written, because no segment arrived in this short run")
        return
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{file}: {len(rows)} rows")


def _changes(settings: Sequence[str]) -> dict[str, Any]:
    """`channel.service=1000` as a name and a value."""
    changes: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"--set {setting}: expected NAME=VALUE, for example channel.service=1000")
        changes[name.strip()] = _value(text.strip())
    return changes


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "what", nargs="?", default="results", choices=["results", "vary", "parameters", "space", "draw"]
    )
    parser.add_argument(
        "--seeds",
        type=int,
        help="number of seeds (default: 100 for new_reno, 20 for the others; vary and parameters: 3)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="replaces the value of a parameter"
    )
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write into")
    options = parser.parse_args(arguments)
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds {options.seeds}: expected at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
