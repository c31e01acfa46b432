//! Import of the output of ping (iputils, BSD, macOS, Windows).

use std::collections::BTreeSet;

use gridhaul_capture::Interval;
use gridhaul_scenario::units::{BitRate, Bytes, Duration};

use super::link_scenario::{Direction, Flow, LinkScenario, Sourced, bernoulli, delay};
use super::{File, ImportError};

/// Values that ping does not measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rate of the link.
    pub rate: BitRate,
    /// Size of the messages of the flow.
    pub size: Bytes,
    /// Time between two messages.
    pub every: Duration,
}

/// Round trips and losses of an output.
#[derive(Debug, Default)]
struct Echoes {
    /// Round trips in s, in ascending order.
    trips: Vec<f64>,
    /// Unit of the last digit of the round trips in s; the largest one.
    unit_s: f64,
    /// Bytes of an echo with its IP header; `None` if no answer states its size.
    bytes: Option<u64>,
    /// Sent and received packets, by the last lines.
    counted: Option<[u64; 2]>,
    /// Sequence numbers of the answers, for an output without its last lines.
    sequence: Sequence,
}

/// Bytes of IP and ICMP around 56 bytes of data, if no answer states its size.
const USUAL: u64 = 84;

/// Sequence numbers of answers, each once: an answer may be duplicated.
#[derive(Debug, Default)]
struct Sequence {
    numbers: BTreeSet<i64>,
}

/// The scenario of an output of ping, as TOML.
///
/// # Errors
/// A file without round trips, or with one that the rate does not permit.
pub fn import(file: File<'_>, options: &Options) -> Result<String, ImportError> {
    let echoes = Echoes::read(file.text);
    let (Some(&smallest), count) = (echoes.trips.first(), echoes.trips.len()) else {
        let message = "no line has a round trip such as \"time=12.3 ms\"";
        return Err(file.error("the file", message, "give the output of `ping -c 100 HOST`"));
    };
    // One round trip alone says nothing about smaller ones; equal texts may differ by their unit.
    let second = echoes.trips.get(1).map_or(f64::INFINITY, |second| second + echoes.unit_s);
    let end = Interval::of_lower_end(smallest, second);
    // The echo and its answer are transmitted at the rate of the link.
    let bytes = echoes.bytes.unwrap_or(USUAL);
    let transmission = 8.0 * bytes as f64 / options.rate.as_bits_per_sec() as f64;
    if smallest + echoes.unit_s < 2.0 * transmission {
        let message = format!(
            "the smallest round trip, {:.3} ms, is shorter than the transmission of {bytes} B in \
             both directions, {:.3} ms",
            smallest * 1e3,
            2e3 * transmission
        );
        return Err(file.error("--rate", message, "give the rate of the slowest link with --rate"));
    }
    let delay_source = format!(
        "half of the smallest of {count} round trips, {:.3} ms, 99 % interval {:.3} to {:.3} ms \
         (end point of a distribution), without {:.3} ms of transmission of {bytes} B",
        smallest * 1e3,
        end.low * 1e3,
        end.high * 1e3,
        transmission * 1e3
    );
    let mean = echoes.trips.iter().sum::<f64>() / count as f64;
    let jitter = delay((mean - smallest) / 2.0);
    let direction = Direction {
        rate: Sourced {
            value: options.rate,
            source: "the option --rate: ping does not measure it".into(),
        },
        delay: Sourced { value: delay(smallest / 2.0 - transmission), source: delay_source },
        loss: echoes.loss(),
        jitter: (!jitter.is_zero()).then(|| Sourced {
            value: format!("{{ size = \"{jitter}\", shape = \"exponential\" }}"),
            source: format!(
                "half of the mean round trip, {:.3} ms, above the smallest; exponential is assumed",
                mean * 1e3
            ),
        }),
        queue: None,
    };
    let scenario = LinkScenario {
        origin: vec![
            format!("Imported from {} (ping).", file.name),
            "Both directions are assumed to be equal. The flow is an example.".to_owned(),
        ],
        title: format!("Link of {}", file.name),
        duration: Duration::from_secs(60),
        forward: direction.clone(),
        reverse: direction,
        stacks: Vec::new(),
        flows: vec![Flow {
            name: "messages".to_owned(),
            source: "the options --size and --every".to_owned(),
            is_upload: true,
            stack: None,
            load: format!(
                "{{ periodic = {{ size = \"{}\", every = \"{}\" }} }}",
                options.size, options.every
            ),
        }],
        capture_point: None,
    };
    Ok(scenario.to_toml())
}

impl Echoes {
    fn read(text: &str) -> Self {
        let mut echoes = Self::default();
        for line in text.lines() {
            if let Some(trip) = round_trip(line) {
                echoes.trips.push(trip.seconds);
                echoes.unit_s = echoes.unit_s.max(trip.unit_s);
                echoes.bytes = echoes.bytes.or_else(|| echo_bytes(line));
                if let Some(number) = sequence_number(line) {
                    echoes.sequence.add(number);
                }
            }
            echoes.counted = counted(line).or(echoes.counted);
        }
        echoes.trips.sort_by(f64::total_cmp);
        echoes
    }

    /// Loss of each direction: a packet and its answer arrive with probability (1 - p)².
    fn loss(&self) -> Option<Sourced<String>> {
        let [sent, received] = self.counted.or_else(|| self.sequence.counted())?;
        let lost = sent.checked_sub(received).filter(|lost| *lost > 0)?;
        let one_way = |both: f64| 1.0 - (1.0 - both).sqrt();
        let Interval { low, high, .. } = Interval::of_proportion(lost, sent);
        let source = format!(
            "{lost} of {sent} round trips lost, half of them in each direction, 99 % interval \
             {:.3} to {:.3} % (Wilson)",
            100.0 * one_way(low),
            100.0 * one_way(high)
        );
        Some(Sourced { value: bernoulli(one_way(lost as f64 / sent as f64)), source })
    }
}

/// The time of an answer.
struct RoundTrip {
    seconds: f64,
    /// Unit of its last digit in s.
    unit_s: f64,
}

/// The time of an answer, such as `time=12.3 ms`, `time=12ms` and `time<1ms`.
fn round_trip(line: &str) -> Option<RoundTrip> {
    let (_, rest) = line.split_once("time=").or_else(|| line.split_once("time<"))?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = rest.split_at(end);
    let scale = match unit.trim_start() {
        unit if unit.starts_with("ms") => 1e-3,
        unit if unit.starts_with("us") || unit.starts_with('µ') => 1e-6,
        unit if unit.starts_with('s') => 1.0,
        _ => return None,
    };
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
    let unit_s = scale * 0.1_f64.powi(digits.min(9) as i32);
    Some(RoundTrip { seconds: number.parse::<f64>().ok()? * scale, unit_s })
}

/// Bytes of the echo that a line answers, with the IP header: of `64 bytes from`, which counts the
/// ICMP header, or of `bytes=32`, which counts the data alone. IPv6 addresses have colons.
fn echo_bytes(line: &str) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|bytes| *bytes <= 65_535);
    if let Some((bytes, rest)) = line.split_once(" bytes from ") {
        let address = rest.split(": ").next()?;
        return Some(number(bytes)? + ip_header(address));
    }
    let (before, rest) = line.split_once("bytes=")?;
    let address = before.trim_end().trim_end_matches(':').rsplit(' ').next()?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    Some(number(&rest[..end])? + ICMP_HEADER + ip_header(address))
}

/// Bytes of the ICMP header of an echo.
const ICMP_HEADER: u64 = 8;

/// Bytes of the IP header of this address.
fn ip_header(address: &str) -> u64 {
    if address.contains(':') { 40 } else { 20 }
}

/// The number of `icmp_seq=12`, `icmp_seq 12` or `seq=12`.
fn sequence_number(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("seq")?;
    let rest = rest.trim_start_matches(['=', ' ']);
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl Sequence {
    /// An answer with this number, which begins again after 65,535.
    fn add(&mut self, number: u16) {
        let last = self.numbers.last().copied().unwrap_or(i64::from(number));
        let step = i64::from(number.wrapping_sub(last as u16) as i16);
        self.numbers.insert(last + step);
    }

    /// Echoes from the first to the last that was answered, and those that were answered.
    fn counted(&self) -> Option<[u64; 2]> {
        let (first, last) = (self.numbers.first()?, self.numbers.last()?);
        Some([(last - first) as u64 + 1, self.numbers.len() as u64])
    }
}

/// Sent and received packets: `10 packets transmitted, 9 received` or `Sent = 10, Received = 9`.
fn counted(line: &str) -> Option<[u64; 2]> {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .take(2)
            .collect()
    };
    let line = line.trim();
    let is_counted = line.contains("packets transmitted") || line.contains("Sent =");
    match numbers(line)[..] {
        [sent, received] if is_counted => Some([sent, received]),
        _ => None,
    }
}
