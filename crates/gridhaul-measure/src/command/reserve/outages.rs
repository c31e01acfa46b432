//! The outages: all links of the 5G-ready system are interrupted.

use anyhow::Context;
use gridhaul_scenario::units::{Duration, Instant};
use serde::Serialize;

use super::matrix::{AMQP, Extent};
use crate::args::FailingPart;
use crate::command::cells::parse;
use crate::command::disturbance::Disturbance;
use crate::command::outage::Recovery;
use crate::command::place::Interrupt;
use crate::command::run::execute_until;
use crate::terminal::say;

/// An interruption of all links.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OutageCell {
    pub(super) protocol: &'static str,
    pub(super) length_s: f64,
    pub(super) interval_s: f64,
    /// Longest time without an arrival; `None` if it does not contain the outage.
    pub(super) without_arrival_s: Option<f64>,
    pub(super) first_arrival_after_end_s: Option<f64>,
    pub(super) lost: u64,
    pub(super) refused: u64,
    pub(super) reconnections: usize,
    pub(super) error: Option<String>,
}

/// Interrupts the 5G-ready system for each protocol.
pub(super) fn outages(extent: &Extent, quiet: bool, interrupt: &Interrupt) -> Vec<OutageCell> {
    let mut cells = Vec::new();
    for &protocol in extent.outage_protocols {
        if interrupt.is_set() {
            break;
        }
        if !quiet {
            say(format_args!("outage of {} s: {protocol}", extent.outage.as_secs_f64()));
        }
        cells.push(outage(protocol, extent.outage, interrupt));
    }
    cells
}

/// Whether TCP retransmits what was sent during an outage.
pub(super) fn is_over_tcp(protocol: &str) -> bool {
    matches!(protocol, "mqtt" | AMQP)
}

/// Messages per second during an outage.
const OUTAGE_RATE: f64 = 100.0;

fn outage(protocol: &'static str, length: Duration, interrupted: &Interrupt) -> OutageCell {
    let empty = OutageCell {
        protocol,
        length_s: length.as_secs_f64(),
        interval_s: 1.0 / OUTAGE_RATE,
        without_arrival_s: None,
        first_arrival_after_end_s: None,
        lost: 0,
        refused: 0,
        reconnections: 0,
        error: None,
    };
    let start = Duration::from_secs(3);
    // The backlog of TCP needs up to the length of the outage after it, because its timeout has doubled meanwhile.
    let messages = (OUTAGE_RATE * (length.as_secs_f64() * 2.0 + 3.0)) as u64;
    // Without retransmissions, a message that is late by more than the jitter of the link is lost.
    let horizon = if is_over_tcp(protocol) { "30s" } else { "2s" };
    let command = format!(
        "measure latency {protocol} --system 5g-ready --subscriber to --rate {OUTAGE_RATE} --messages {messages} --horizon {horizon}"
    );
    let measured = || -> anyhow::Result<OutageCell> {
        let disturbance = Disturbance { part: FailingPart::Links, start, length };
        let run = execute_until(&parse(&command)?, interrupted, Some(&disturbance))
            .context("measuring an outage")?;
        let outage = [start, start + length].map(|at| Instant::ZERO + at);
        let recovery = Recovery::new(&run, outage);
        let counts = run.outcome.summary.counts;
        Ok(OutageCell {
            without_arrival_s: recovery.as_ref().map(|it| it.gap.as_secs_f64()),
            first_arrival_after_end_s: recovery.map(|it| it.first_after.as_secs_f64()),
            lost: counts.lost,
            refused: counts.refused,
            reconnections: run.outcome.reconnections.len(),
            ..empty.clone()
        })
    };
    measured()
        .unwrap_or_else(|error| OutageCell { error: Some(format!("{error:#}")), ..empty.clone() })
}
