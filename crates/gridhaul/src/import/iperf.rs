//! Import of a test of iperf3 (`iperf3 --json`).

use gridhaul_capture::Interval;
use gridhaul_scenario::units::{BitRate, Duration};
use serde_json::Value;

use super::link_scenario::{Direction, Flow, LinkScenario, Sourced, bernoulli, delay, rate};
use super::{File, ImportError};

/// Values that the log does not contain, or that replace those of the log.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rate of the link.
    pub rate: Option<BitRate>,
    /// Delay of each direction.
    pub delay: Option<Duration>,
}

/// Headers of IPv4 and TCP with timestamps in each segment.
const HEADERS: f64 = 52.0;

/// Largest number of streams of a test (`MAX_STREAMS` of iperf3).
const STREAMS_MAX: u64 = 128;

/// Headers of IPv4 and UDP in each datagram.
const UDP_HEADERS: f64 = 28.0;

/// The scenario of a test, as TOML.
///
/// # Errors
/// A file that is not the JSON of iperf3, a test that failed, or a value that the log does not
/// contain and that `options` do not either.
pub fn import(file: File<'_>, options: &Options) -> Result<String, ImportError> {
    let root: Value = serde_json::from_str(file.text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        file.error(&place, format!("expected JSON: {error}"), "run the test with `iperf3 --json`")
    })?;
    if let Some(message) = root["error"].as_str() {
        return Err(file.error("error", format!("the test failed: {message}"), "repeat the test"));
    }
    let test = &root["start"]["test_start"];
    if !root["end"]["sum_sent_bidir_reverse"].is_null() {
        let message = "the test has sent in both directions at the same time";
        let help = "test each direction by itself, without --bidir";
        return Err(file.error("end.sum_sent_bidir_reverse", message, help));
    }
    let is_udp = test["protocol"].as_str() == Some("UDP");
    let is_reverse = test["reverse"].as_u64().unwrap_or(0) != 0;
    if test["num_streams"].as_u64().is_some_and(|streams| streams > STREAMS_MAX) {
        let message = format!("expected at most {STREAMS_MAX} streams, as iperf3 has");
        return Err(file.error("start.test_start.num_streams", message, "repair the log"));
    }
    let rates = intervals(&root);
    let missing = |key: &str| {
        let help = "give a complete log of `iperf3 --json`, or the option for this value";
        file.error(key, "the log has no value", help)
    };
    let size =
        if is_udp { test["blksize"].as_f64() } else { root["start"]["tcp_mss_default"].as_f64() };
    let size = size.filter(|size| *size > 0.0).unwrap_or(1_448.0);
    let headers = if is_udp { UDP_HEADERS } else { HEADERS };
    let rate = match options.rate {
        Some(rate) => Sourced { value: rate, source: "the option --rate".to_owned() },
        None => measured_rate(&root, &rates, size, headers)
            .ok_or_else(|| missing("end.sum_received"))?,
    };
    let delay = match options.delay {
        Some(delay) => Sourced { value: delay, source: "the option --delay".to_owned() },
        None => measured_delay(&root).ok_or_else(|| {
            let help =
                "give it with --delay, such as --delay '20 ms' (half of the round trip of ping)";
            file.error("end.streams[].sender.min_rtt", "the log has no round-trip time", help)
        })?,
    };
    let loss = if is_udp { udp_loss(&root) } else { tcp_loss(&root, size) };
    let with_loss = Direction { rate, delay, loss, jitter: None, queue: None };
    let without = Direction { loss: None, ..with_loss.clone() };
    let (forward, reverse) = if is_reverse { (without, with_loss) } else { (with_loss, without) };
    let seconds = test["duration"].as_f64().filter(|seconds| *seconds > 0.0);
    let seconds = seconds.unwrap_or(rates.len().max(1) as f64);
    let version = root["start"]["version"].as_str().unwrap_or("iperf3");
    let scenario = LinkScenario {
        origin: vec![
            format!("Imported from {} ({version}).", file.name),
            "The test is assumed to have filled the link: otherwise the rate is too low."
                .to_owned(),
        ],
        title: format!("Link of {}", file.name),
        duration: Duration::from_secs_f64(seconds),
        forward,
        reverse,
        stacks: Vec::new(),
        flows: flows(&root, size, is_reverse),
        capture_point: None,
    };
    Ok(scenario.to_toml())
}

/// The flows of the test: bulk transfers, or datagrams at the rate of the test.
fn flows(root: &Value, size: f64, is_reverse: bool) -> Vec<Flow> {
    let test = &root["start"]["test_start"];
    let streams = test["num_streams"].as_u64().unwrap_or(1);
    let load = if test["protocol"].as_str() == Some("UDP") {
        let sent = root["end"]["sum"]["bits_per_second"].as_f64().unwrap_or(1e6).max(1.0);
        let every = Duration::from_secs_f64(size * 8.0 * streams as f64 / sent);
        format!(
            "{{ periodic = {{ size = \"{size:.0} B\", every = \"{every}\" }} }}\ntransport = \
             \"datagram\""
        )
    } else {
        "\"bulk\"".to_owned()
    };
    let flows = (1..=streams).map(|number| Flow {
        name: format!("stream-{number}"),
        source: format!("stream {number} of {streams} of the test"),
        is_upload: !is_reverse,
        stack: None,
        load: load.clone(),
    });
    flows.collect()
}

/// Rates of the intervals in bit/s, in ascending order, without omitted ones.
fn intervals(root: &Value) -> Vec<f64> {
    let intervals = root["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let counted =
        intervals.iter().filter(|interval| interval["sum"]["omitted"] != Value::Bool(true));
    let mut rates: Vec<f64> =
        counted.filter_map(|interval| interval["sum"]["bits_per_second"].as_f64()).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// The rate on the link, from that of the payload: the median of the receiver's intervals, or the
/// receiver's total in the log of the sender. The intervals of a sender count what it has written
/// to its socket buffer, in steps of about a buffer, so that their median is a multiple of a step;
/// they are used only if the log has no total of the receiver.
fn measured_rate(root: &Value, rates: &[f64], size: f64, headers: f64) -> Option<Sourced<BitRate>> {
    let factor = (size + headers) / size;
    let with = format!("with {headers:.0} B of headers for each {size:.0} B");
    let is_receiver = is_log_of_receiver(root);
    let received = &root["end"]["sum_received"];
    let total = received["bits_per_second"].as_f64().filter(|rate| *rate > 0.0);
    if let Some(total) = total.filter(|_| !is_receiver || rates.is_empty()) {
        let on_link = total * factor;
        let source = format!(
            "the receiver's total in {:.1} s, {with}: {on_link:.0} bit/s, without an interval (the \
             sender's intervals count writes to its socket buffer)",
            received["seconds"].as_f64().unwrap_or(0.0)
        );
        return Some(Sourced { value: rate(on_link), source });
    }
    let upper = *rates.get(rates.len() / 2)?;
    // Of an even number, the median is in the middle of two values.
    let middle = f64::midpoint(upper, rates[(rates.len() - 1) / 2]);
    let interval = Interval::of_median(rates)?;
    let end = if is_receiver {
        "receiver"
    } else {
        "sender, which count writes to its socket buffer (the log has no total of the receiver)"
    };
    let source = format!(
        "median of {} intervals of the {end}, {with}: {:.0}, {} {:.0} to {:.0} bit/s \
         (order statistics)",
        rates.len(),
        middle * factor,
        interval.name(),
        interval.low * factor,
        interval.high * factor
    );
    Some(Sourced { value: rate(middle * factor), source })
}

/// Whether the log is that of the end that receives: the server's, or in a reverse test the
/// client's.
fn is_log_of_receiver(root: &Value) -> bool {
    let is_server = !root["start"]["accepted_connection"].is_null();
    let is_reverse = root["start"]["test_start"]["reverse"].as_u64().unwrap_or(0) != 0;
    is_server != is_reverse
}

fn measured_delay(root: &Value) -> Option<Sourced<Duration>> {
    let streams = root["end"]["streams"].as_array()?;
    let trips = streams.iter().filter_map(|stream| stream["sender"]["min_rtt"].as_f64());
    let smallest = trips.filter(|trip| *trip > 0.0).min_by(f64::total_cmp)?;
    let source = format!(
        "half of the smallest of iperf3's samples, {smallest:.0} us, with the queue of the test"
    );
    Some(Sourced { value: delay(smallest / 2e6), source })
}

fn tcp_loss(root: &Value, size: f64) -> Option<Sourced<String>> {
    let sent = &root["end"]["sum_sent"];
    let retransmitted = sent["retransmits"].as_u64()?;
    let segments = (sent["bytes"].as_f64()? / size).ceil() as u64 + retransmitted;
    (retransmitted > 0).then(|| {
        let Interval { low, high, .. } = Interval::of_proportion(retransmitted, segments);
        let source = format!(
            "{retransmitted} retransmissions in {segments} segments, 99 % interval {:.3} to {:.3} \
             % (Wilson): too high, if a full queue has caused them",
            100.0 * low,
            100.0 * high
        );
        Sourced { value: bernoulli(retransmitted as f64 / segments as f64), source }
    })
}

fn udp_loss(root: &Value) -> Option<Sourced<String>> {
    let sum = &root["end"]["sum"];
    let (lost, packets) = (sum["lost_packets"].as_u64()?, sum["packets"].as_u64()?);
    (lost > 0 && packets > 0).then(|| {
        let Interval { low, high, .. } = Interval::of_proportion(lost, packets);
        let source = format!(
            "{lost} of {packets} datagrams lost, 99 % interval {:.3} to {:.3} % (Wilson)",
            100.0 * low,
            100.0 * high
        );
        Sourced { value: bernoulli(lost as f64 / packets as f64), source }
    })
}
