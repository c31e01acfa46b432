//! Probes between both routers: the payload of a UDP datagram, in network byte order.
//!
//! Magic (2 bytes), version (1), number of reports (1), session of the sender (4) and of the peer
//! (4), link (2), interval in milliseconds (2), number of the probe (4); then for each link of the
//! sender: link (2), flags (1), time since the last probe in milliseconds (2), its number (4),
//! count of probes (4). A large probe ends with bytes that are zero.

use gridhaul_scenario::units::Duration;

/// A probe, and what its sender has received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Random number of this run of the sender.
    pub session: u32,
    /// Session of the peer, from its probes; 0 if there were none. Only probes with the session of
    /// the receiver have a valid origin: an attacker who does not see the packets of both routers
    /// does not know the number.
    pub peer_session: u32,
    /// Link over which the probe is sent ([`link_number`]).
    pub link: u16,
    /// Interval of the probes on this link.
    pub interval: Duration,
    /// Number of the probe on this link, from 1. Large probes have numbers of their own.
    pub number: u32,
    /// State of the links in the direction to the sender.
    pub reports: Vec<Report>,
    /// Length of the datagram in bytes, if this is a large probe. It is longer than its content.
    pub padded_to: Option<usize>,
}

/// State of a link in the direction to the sender of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The link.
    pub link: u16,
    /// Whether the report is about large probes.
    pub is_about_large: bool,
    /// Whether the device of the link has carrier.
    pub has_carrier: bool,
    /// The probe that has arrived last: its number, and the time since then.
    pub last: Option<LastProbe>,
    /// Probes that have arrived in this session of the peer.
    pub count: u32,
}

/// The probe of a link that has arrived last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastProbe {
    /// Number of the probe.
    pub number: u32,
    /// Time since its arrival; at most 65,535 ms, the largest number of the field.
    pub age: Duration,
}

/// Largest age of a probe in a report.
pub(super) const AGE_MAX: Duration = Duration::from_millis(u16::MAX as u64);

const MAGIC: [u8; 2] = *b"GR";
const VERSION: u8 = 2;

const CARRIER: u8 = 1;
const RECEIVED: u8 = 2;
const LARGE: u8 = 4;

/// Number of a link in probes: a hash of its name (FNV-1a), which both routers compute, so that the
/// order of the links may differ.
#[must_use]
pub fn link_number(name: &str) -> u16 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16 ^ hash) as u16
}

impl Probe {
    /// Bytes of a probe without reports.
    pub const HEADER_BYTES: usize = 20;

    /// Bytes of each report.
    pub const REPORT_BYTES: usize = 13;

    /// The bytes of the datagram.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes =
            Vec::with_capacity(Self::HEADER_BYTES + Self::REPORT_BYTES * self.reports.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, self.reports.len() as u8]);
        bytes.extend_from_slice(&self.session.to_be_bytes());
        bytes.extend_from_slice(&self.peer_session.to_be_bytes());
        bytes.extend_from_slice(&self.link.to_be_bytes());
        bytes.extend_from_slice(&milliseconds(self.interval).to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        for report in &self.reports {
            let carrier = if report.has_carrier { CARRIER } else { 0 };
            let received = if report.last.is_some() { RECEIVED } else { 0 };
            let large = if report.is_about_large { LARGE } else { 0 };
            let last = report.last.unwrap_or(LastProbe { number: 0, age: Duration::ZERO });
            bytes.extend_from_slice(&report.link.to_be_bytes());
            bytes.push(carrier | received | large);
            bytes.extend_from_slice(&milliseconds(last.age).to_be_bytes());
            bytes.extend_from_slice(&last.number.to_be_bytes());
            bytes.extend_from_slice(&report.count.to_be_bytes());
        }
        bytes.resize(self.padded_to.unwrap_or(0).max(bytes.len()), 0);
        bytes
    }

    /// The probe in a datagram; `None` if it is none of this version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(Self::HEADER_BYTES)?;
        let is_probe = header[..2] == MAGIC && header[2] == VERSION;
        let (reports, padding) =
            rest.split_at_checked(Self::REPORT_BYTES * usize::from(header[3]))?;
        if !is_probe || padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let report = |bytes: &[u8]| Report {
            link: short(bytes, 0),
            is_about_large: bytes[2] & LARGE != 0,
            has_carrier: bytes[2] & CARRIER != 0,
            last: (bytes[2] & RECEIVED != 0).then(|| LastProbe {
                number: word(bytes, 5),
                age: Duration::from_millis(short(bytes, 3).into()),
            }),
            count: word(bytes, 9),
        };
        Some(Self {
            session: word(header, 4),
            peer_session: word(header, 8),
            link: short(header, 12),
            interval: Duration::from_millis(short(header, 14).into()),
            number: word(header, 16),
            reports: reports.chunks_exact(Self::REPORT_BYTES).map(report).collect(),
            padded_to: (!padding.is_empty()).then_some(bytes.len()),
        })
    }
}

fn milliseconds(time: Duration) -> u16 {
    u16::try_from(time.as_nanos() / 1_000_000).unwrap_or(u16::MAX)
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> Probe {
        let last = Some(LastProbe { number: 77, age: Duration::from_millis(1_234) });
        let is_about_large = true;
        let (gprs, dvbt) = (link_number("gprs"), link_number("dvbt"));
        let one = Report { link: gprs, is_about_large, has_carrier: true, last, count: 70 };
        let is_about_large = false;
        let other = Report { link: dvbt, is_about_large, has_carrier: false, last: None, count: 0 };
        Probe {
            session: 0xdead_beef,
            peer_session: 3,
            link: link_number("gprs"),
            interval: Duration::from_millis(200),
            number: 4_000_000_000,
            reports: vec![one, other],
            padded_to: None,
        }
    }

    #[test]
    fn a_probe_reads_back_and_has_46_bytes_with_two_links() {
        let bytes = probe().encode();
        assert_eq!(bytes.len(), 46, "74 bytes with the headers of IPv4 and UDP");
        assert_eq!(Probe::decode(&bytes), Some(probe()));
    }

    #[test]
    fn a_large_probe_has_its_length_and_reads_back() {
        let large = Probe { padded_to: Some(1_472), ..probe() };
        let bytes = large.encode();
        assert_eq!(bytes.len(), 1_472, "1500 bytes with the headers of IPv4 and UDP");
        assert_eq!(Probe::decode(&bytes), Some(large));
    }

    #[test]
    fn a_long_age_is_the_largest_one() {
        let mut probe = probe();
        let last = probe.reports[0].last.as_mut().unwrap();
        last.age = Duration::from_secs(1_000);
        let read = Probe::decode(&probe.encode()).unwrap();
        assert_eq!(read.reports[0].last.unwrap().age, AGE_MAX);
    }

    #[test]
    fn other_datagrams_are_no_probes() {
        let bytes = probe().encode();
        for length in 0..bytes.len() {
            assert_eq!(Probe::decode(&bytes[..length]), None, "{length} bytes");
        }
        let longer = [&bytes[..], &[0, 1]].concat();
        assert_eq!(Probe::decode(&longer), None, "padding is zero");
        for at in 0..4 {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            assert_eq!(Probe::decode(&changed), None, "byte {at}");
        }
    }
}
