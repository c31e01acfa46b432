//! Latencies of several measurements in short: the cells of a matrix, and of the tables of a paper.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use gridhaul_protocols::settings::{BrokerProgram, BrokerSettings};
use gridhaul_report::chart::BoxStatistics;
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::measurement::{Measurement, RequestedBroker};
use crate::method::findings;
use crate::place::LocalNetwork;
use crate::place::Sites;
use crate::protocol::Started;
use crate::report::statistics;
use crate::results_folder::create;
use crate::run::{Observer, Run, RunRequest, at_sites, carrier, message, run_once};
use crate::settings::Settings;

/// A measurement of several, and the folder of its log.
#[derive(Debug, Clone)]
pub(crate) struct Cell<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) folder: Option<PathBuf>,
}

/// Numbers of a measurement; latencies are from the send time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellResult {
    pub(crate) messages: u64,
    pub(crate) missing: u64,
    pub(crate) mean_s: f64,
    /// Standard deviation.
    pub(crate) deviation_s: f64,
    pub(crate) p2_s: f64,
    pub(crate) p25_s: f64,
    pub(crate) p50_s: Option<f64>,
    pub(crate) p75_s: f64,
    pub(crate) p98_s: f64,
    pub(crate) p999_s: Option<f64>,
    pub(crate) max_s: f64,
    /// Whether lateness of the generator could explain a part of the result.
    pub(crate) invalid: Vec<String>,
    /// Settings of the protocol, its broker and the kernel.
    pub(crate) settings: Settings,
}

/// Result of a measurement: its numbers, or `None` if no message arrived.
pub(crate) type Outcome = anyhow::Result<Option<CellResult>>;

impl CellResult {
    /// The numbers of a run; `None` if no message arrived.
    pub(crate) fn new(run: &Run) -> Option<Self> {
        let summary = &run.outcome.summary;
        let median = summary.from_send.quantile(0.5).map(|quantile| quantile.value.as_secs_f64());
        let deviation = summary.from_send.standard_deviation()?.as_secs_f64();
        statistics(&summary.from_send).map(|found| Self {
            messages: summary.counts.messages,
            missing: summary.missing(),
            mean_s: found.mean,
            deviation_s: deviation,
            p2_s: found.whiskers[0],
            p25_s: found.quartiles[0],
            p50_s: median,
            p75_s: found.quartiles[1],
            p98_s: found.whiskers[1],
            p999_s: found.tail,
            max_s: found.max,
            invalid: findings(summary).iter().map(ToString::to_string).collect(),
            settings: run.settings.clone(),
        })
    }

    /// The numbers of the box.
    pub(crate) const fn statistics(&self) -> BoxStatistics {
        BoxStatistics {
            whiskers: [self.p2_s, self.p98_s],
            quartiles: [self.p25_s, self.p75_s],
            mean: self.mean_s,
            tail: self.p999_s,
            max: self.max_s,
        }
    }
}

/// Measures each cell, in this order, until the user interrupts. `finish` receives the number of
/// the cell and its outcome.
///
/// RabbitMQ starts slowly: successive measurements with the same network and the same settings of
/// the broker share one.
pub(crate) fn measure_each(
    cells: &[Cell<'_>],
    observer: &dyn Observer,
    finish: &mut dyn FnMut(usize, Outcome),
) {
    let shares = |a: &Cell<'_>, b: &Cell<'_>| {
        let both = [a, b].map(|cell| shared_broker(cell.measurement).is_some());
        both == [true, true] && has_same_place(a.measurement, b.measurement)
    };
    let mut first = 0;
    for group in cells.chunk_by(shares) {
        match group {
            _ if observer.stop().load(Ordering::Relaxed) => return,
            [cell] => finish(first, measure(cell, observer)),
            group => {
                let mut finish = |number, outcome| finish(first + number, outcome);
                measure_at_one_broker(group, observer, &mut finish);
            }
        }
        first += group.len();
    }
}

fn measure(cell: &Cell<'_>, observer: &dyn Observer) -> Outcome {
    let folder = cell.folder.as_deref();
    folder.map_or(Ok(()), create)?;
    cell.measurement.validate()?;
    Ok(CellResult::new(&run_once(cell.measurement, folder, observer)?))
}

/// Settings of the broker of a measurement, if this is RabbitMQ, and this program starts it.
fn shared_broker(measurement: &Measurement) -> Option<BrokerSettings> {
    match measurement.protocol.requested_broker()? {
        // With TLS, a broker has a certificate that is made for one run.
        RequestedBroker::Started(BrokerProgram::RabbitMq, settings) if !settings.tls => {
            Some(settings)
        }
        RequestedBroker::Started(..) | RequestedBroker::Given(_) => None,
    }
}

/// Whether two measurements through a broker can share network and broker.
fn has_same_place(a: &Measurement, b: &Measurement) -> bool {
    // Where the subscriber is, and Nagle's algorithm at the broker, are settings of the shared
    // part; those of the clients are not.
    let key = |measurement: &Measurement| {
        let connection = measurement.protocol.broker_connection().copied().unwrap_or_default();
        (measurement.place.clone(), connection.subscriber, connection.nodelay.at_broker())
    };
    key(a) == key(b)
}

/// Measures cells with the same network and one broker. If network or broker fail, so do the cells
/// that are left.
fn measure_at_one_broker(
    cells: &[Cell<'_>],
    observer: &dyn Observer,
    finish: &mut dyn FnMut(usize, Outcome),
) {
    let mut measured = 0;
    let mut measure = || -> anyhow::Result<()> {
        let first = cells[0].measurement;
        let network = LocalNetwork::of_measurement(first)?;
        let settings = shared_broker(first).unwrap_or_default();
        let prepare =
            |sites: &Sites<'_>| Ok(Broker::start(BrokerProgram::RabbitMq, &sites.to, settings)?);
        network.enter(carrier(&first.protocol), prepare, |sites, broker| {
            let is_stopped = || observer.stop().load(Ordering::Relaxed);
            for cell in cells.iter().take_while(|_| !is_stopped()) {
                let at_broker = AtBroker { sites, network: &network.name, broker: &broker };
                finish(measured, at_broker.measure(cell, settings.nodelay, observer));
                measured += 1;
            }
            Ok(())
        })
    };
    if let Err(error) = measure() {
        let reason = message(&error);
        for number in measured..cells.len() {
            finish(number, Err(anyhow::anyhow!(reason.clone())));
        }
    }
}

/// A network with a broker that several measurements share.
struct AtBroker<'a> {
    sites: &'a Sites<'a>,
    network: &'a str,
    broker: &'a Broker,
}

impl AtBroker<'_> {
    fn measure(&self, cell: &Cell<'_>, nodelay: bool, observer: &dyn Observer) -> Outcome {
        let folder = cell.folder.as_deref();
        folder.map_or(Ok(()), create)?;
        let request = RunRequest::new(cell.measurement, folder)?;
        let started = Started::at_broker(cell.measurement, self.sites, self.broker, Some(nodelay))?;
        let (run, _) = at_sites(&request, self.sites, started, self.network, observer)?;
        Ok(CellResult::new(&run))
    }
}
