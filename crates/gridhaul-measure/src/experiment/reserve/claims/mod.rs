//! Statements of the report, compared with the measurements.

mod comparisons;
mod estimate;
mod latency;
mod outages;
mod traffic;

use gridhaul_report::verdict::{Comparison, Reference, Verdict};
use serde::Serialize;

use super::outages::OutageCell;
use super::plan::{AMQP, Cell, CellKey, Variant};
use super::test_8::Measured;
use crate::experiment::reserve::paper::{RecordedClaim, Tables};
use estimate::{Estimate, Quantity};

/// A statement with its recorded verdict, and that of the measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Claim {
    #[serde(flatten)]
    pub(super) recorded: RecordedClaim,
    pub(super) measured_verdict: Verdict,
    /// Measured value, in words.
    pub(super) measured: String,
    pub(super) as_recorded: bool,
}

/// All measurements.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measurements<'a> {
    pub(super) cells: &'a [Cell],
    pub(super) outages: &'a [OutageCell],
    pub(super) series: &'a [Measured],
}

impl Claim {
    /// The claim as a row of the table of comparisons.
    pub(super) fn comparison(&self) -> Comparison {
        let recorded = &self.recorded;
        let reference = match (&recorded.printed, recorded.section.as_str()) {
            (Some(_), _) => Reference::PrintedNumber,
            (None, "ours") => Reference::OwnRange,
            (None, _) => Reference::Statement,
        };
        Comparison {
            statement: format!("{}: {}", recorded.section, recorded.text),
            reference,
            printed: recorded.printed.clone(),
            measured: self.measured.clone(),
            verdict: self.measured_verdict,
            as_recorded: self.as_recorded,
            reason: recorded.reason.clone(),
        }
    }
}

/// The verdict of a statement, and what was measured.
type Finding = (Verdict, String);

/// All statements in the order of the file. In a run of the whole plan, a statement without a
/// measurement is not as recorded.
pub(super) fn claims(
    measurements: &Measurements<'_>,
    tables: &Tables,
    is_whole: bool,
) -> Vec<Claim> {
    let claims = RecordedClaim::published().into_iter().map(|recorded| {
        let (measured_verdict, measured) = find(&recorded, measurements, tables);
        let is_left_out = measured_verdict == Verdict::Unknown && !is_whole;
        let as_recorded = is_left_out || recorded.verdict.permits(measured_verdict);
        Claim { recorded, measured_verdict, measured, as_recorded }
    });
    claims.collect()
}

/// The verdict of a statement. Each name of the file has an arm in one of these functions, which a
/// test checks.
fn find(claim: &RecordedClaim, measurements: &Measurements<'_>, tables: &Tables) -> Finding {
    let results = Results { cells: measurements.cells, margin: claim.margin() };
    let found = latency::find(&claim.name, &results);
    let needs_cells = !matches!(found, Some((Verdict::Agrees | Verdict::Differs, _)));
    let found = match found {
        Some(_) if needs_cells && results.cells.is_empty() => {
            Some((Verdict::Unknown, "not measured".into()))
        }
        found => found,
    };
    let found = found
        .or_else(|| outages::find(&claim.name, measurements.outages))
        .or_else(|| traffic::find(&claim.name, measurements.series, tables));
    found.unwrap_or_else(|| (Verdict::Unknown, UNKNOWN.into()))
}

/// A statement without a comparison.
const UNKNOWN: &str = "no comparison";

/// Measurements of the latency as a claim with this margin uses them.
#[derive(Debug, Clone, Copy)]
struct Results<'a> {
    cells: &'a [Cell],
    margin: f64,
}

/// The rates of the matrix of the report.
const RATES: [u32; 3] = [10, 100, 1_000];

impl<'a> Results<'a> {
    fn cell(&self, key: CellKey) -> Option<&'a Cell> {
        self.cells.iter().find(|cell| cell.key == key)
    }

    /// An estimate of a measurement, widened by the margin.
    fn one(&self, key: CellKey, quantity: Quantity) -> Option<Estimate> {
        Some(Estimate::of(self.cell(key)?, quantity)?.widened(self.margin))
    }

    /// Estimates at the rates of the report that are part of the plan; `None` where one is missing.
    fn rates(&self, key: CellKey, quantity: Quantity) -> Vec<Option<Estimate>> {
        let keys = RATES.map(|rate_per_s| CellKey { rate_per_s, ..key });
        let planned = keys.into_iter().filter(|key| self.cell(*key).is_some());
        planned.map(|key| self.one(key, quantity)).collect()
    }

    /// The uplink of a system with 10 values at all rates.
    fn uplink(
        &self,
        system: &'static str,
        protocol: &'static str,
        quantity: Quantity,
    ) -> Vec<Option<Estimate>> {
        self.rates(CellKey::uplink(system, protocol, 0), quantity)
    }
}

/// Name of a protocol in texts.
fn name(protocol: &str) -> &str {
    match protocol {
        "udp" => "UDP",
        "sv" => "Sampled Values",
        "mqtt" => "MQTT",
        AMQP => "AMQP",
        other => other,
    }
}

/// Estimates in words.
fn texts(estimates: &[Option<Estimate>]) -> String {
    if estimates.is_empty() {
        return "not measured".into();
    }
    let text =
        |estimate: &Option<Estimate>| estimate.map_or_else(|| "too few".into(), Estimate::text);
    format!("{} ms", estimates.iter().map(text).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
