//! Synchrophasors by IEEE C37.118.2-2011 over TCP: a measurement unit (PMU) and a concentrator
//! (PDC).
//!
//! The concentrator requests the configuration (CFG-2) and then the transmission. A message is a
//! data frame: phasors of 16-bit integers carry its bytes, four in each, and one analog value its
//! length. All data frames of a connection have the same size, which the configuration fixes.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::c37_118::{Role, Synchrophasor};
//! use gridhaul_scenario::units::Instant;
//!
//! let mut concentrator = Synchrophasor::new(Role::Concentrator);
//! concentrator.open(Instant::ZERO);
//! let mut bytes = Vec::new();
//! concentrator.poll_output(&mut bytes);
//! // A command frame of 18 bytes.
//! assert_eq!(bytes[..4], [0xaa, 0x42, 0, 18]);
//! ```

use gridhaul_scenario::units::Instant;

use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "c37.118";

/// Longest message: the configuration has 20 B for each phasor in a frame of at most 65,535 B.
pub const MESSAGE_MAX: usize = 8_192;

/// Bytes of a frame before its contents: SYNC, FRAMESIZE, IDCODE, SOC, FRACSEC (table 2).
const HEADER: usize = 14;

/// Bytes of a data frame besides the phasors: header, STAT, FREQ, DFREQ, one analog value, CHK
/// (table 5).
pub const DATA_OVERHEAD: usize = HEADER + 2 + 2 + 2 + 2 + 2;

/// Frame types in SYNC (table 2).
const DATA: u8 = 0x00;
const CONFIGURATION_2: u8 = 0x30;
const COMMAND: u8 = 0x40;

/// Version of the standard in the low bits of SYNC: that of 2011. The frames used here are the same
/// in version 1, of 2005.
const VERSION: u8 = 2;
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=VERSION;

/// Commands (table 15).
const TRANSMISSION_OFF: u16 = 1;
const TRANSMISSION_ON: u16 = 2;
const SEND_CONFIGURATION_2: u16 = 5;

/// Identifier of the data stream.
const STREAM: u16 = 1;

/// Fractions of a second in FRACSEC.
const TIME_BASE: u32 = 1_000_000;

/// Role of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends data frames of messages of this length at most.
    MeasurementUnit(usize),
    /// Receives data frames.
    Concentrator,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Synchrophasor {
    role: Role,
    queues: Queues,
    /// Measurement unit: the transmission is on. Concentrator: the configuration has arrived.
    is_ready: bool,
    /// Number of phasors that the configuration announced.
    phasors: usize,
}

impl Synchrophasor {
    /// An end that is not connected.
    #[must_use]
    pub fn new(role: Role) -> Self {
        let phasors = match role {
            Role::MeasurementUnit(bytes) => bytes.div_ceil(4),
            Role::Concentrator => 0,
        };
        Self { role, queues: Queues::default(), is_ready: false, phasors }
    }

    fn handle_frame(&mut self, frame: &[u8], now: Instant) -> Result<(), EndpointError> {
        let (contents, sum) = frame.split_at(frame.len() - 2);
        if crc(contents).to_be_bytes() != sum {
            return Err(invalid("a frame with a wrong CHK".into()));
        }
        let body = &contents[HEADER..];
        let (kind, version) = (frame[1] & 0xf0, frame[1] & 0x0f);
        if !VERSIONS.contains(&version) {
            return Err(invalid(format!("a frame of version {version} of the standard")));
        }
        match (kind, self.role) {
            (COMMAND, Role::MeasurementUnit(_)) => self.handle_command(body, now),
            (CONFIGURATION_2, Role::Concentrator) => {
                self.phasors = phasors(body).ok_or_else(|| {
                    invalid(
                        "a configuration that is not that of one unit with 16-bit phasors".into(),
                    )
                })?;
                self.is_ready = true;
                self.write_command(TRANSMISSION_ON, now);
                Ok(())
            }
            (DATA, Role::Concentrator) if self.is_ready => self.handle_data(body),
            (kind, _) => Err(invalid(format!("an unexpected frame of type {kind:#04x}"))),
        }
    }

    fn handle_command(&mut self, body: &[u8], now: Instant) -> Result<(), EndpointError> {
        let command = body.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
        match command {
            Some(TRANSMISSION_OFF) => self.is_ready = false,
            Some(TRANSMISSION_ON) => self.is_ready = true,
            Some(SEND_CONFIGURATION_2) => {
                let body = configuration(self.phasors);
                write_frame(&mut self.queues.output, CONFIGURATION_2, &body, now);
            }
            Some(other) => return Err(invalid(format!("an unknown command {other}"))),
            None => return Err(invalid("a command frame without command".into())),
        }
        Ok(())
    }

    fn handle_data(&mut self, body: &[u8]) -> Result<(), EndpointError> {
        let bytes = 4 * self.phasors;
        if HEADER + body.len() + 2 != DATA_OVERHEAD + bytes {
            return Err(invalid(format!(
                "a data frame of {} B for {} phasors",
                body.len(),
                self.phasors
            )));
        }
        // STAT, phasors, FREQ, DFREQ, analog value.
        let length = usize::from(u16::from_be_bytes([body[2 + bytes + 4], body[2 + bytes + 5]]));
        if length > bytes {
            return Err(invalid(format!("a length of {length} B in {bytes} B")));
        }
        self.queues.messages.push_back(body[2..2 + length].to_vec());
        Ok(())
    }

    fn write_command(&mut self, command: u16, now: Instant) {
        write_frame(&mut self.queues.output, COMMAND, &command.to_be_bytes(), now);
    }
}

/// A frame with header and CHK.
fn write_frame(output: &mut Vec<u8>, kind: u8, body: &[u8], now: Instant) {
    let begin = output.len();
    let size = (HEADER + body.len() + 2) as u16;
    let nanos = now.since(Instant::ZERO).as_nanos();
    let seconds = (nanos / 1_000_000_000) as u32;
    let micros = (nanos % 1_000_000_000 / 1_000) as u32;
    // Time quality F: the clock of a measurement is not UTC (table 4).
    let fraction = 0x0f00_0000 | micros;
    output.extend([0xaa, kind | VERSION]);
    output.extend(size.to_be_bytes());
    output.extend(STREAM.to_be_bytes());
    output.extend(seconds.to_be_bytes());
    output.extend(fraction.to_be_bytes());
    output.extend(body);
    let sum = crc(&output[begin..]);
    output.extend(sum.to_be_bytes());
}

/// CFG-2 of one unit (table 9): 16-bit integers in rectangular form, one analog value, no digital
/// words.
fn configuration(phasors: usize) -> Vec<u8> {
    let mut body = TIME_BASE.to_be_bytes().to_vec();
    let name = |text: &str| format!("{text:<16}").into_bytes();
    body.extend(1_u16.to_be_bytes());
    body.extend(name("gridhaul"));
    body.extend(STREAM.to_be_bytes());
    // FORMAT: integers, rectangular.
    body.extend(0_u16.to_be_bytes());
    body.extend((phasors as u16).to_be_bytes());
    body.extend(1_u16.to_be_bytes());
    body.extend(0_u16.to_be_bytes());
    (0..phasors).for_each(|number| body.extend(name(&format!("bytes {}", 4 * number))));
    body.extend(name("length"));
    // PHUNIT: voltage, 10 µV for each bit. ANUNIT: single value, factor 1.
    (0..phasors).for_each(|_| body.extend(1_u32.to_be_bytes()));
    body.extend(1_u32.to_be_bytes());
    // FNOM 50 Hz, CFGCNT, DATA_RATE of one frame per second: the rate is that of the measurement.
    body.extend([1_u16, 0, 1].map(u16::to_be_bytes).concat());
    body
}

/// Number of phasors in a configuration such as that of [`configuration`].
fn phasors(body: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    // After TIME_BASE, NUM_PMU, STN and IDCODE.
    let (units, format, phasors) = (word(4)?, word(24)?, usize::from(word(26)?));
    let (analog, digital) = (word(28)?, word(30)?);
    let is_ours = units == 1 && format & 0xf == 0 && analog == 1 && digital == 0;
    (is_ours && body.len() == 32 + 20 * (phasors + 1) + 6).then_some(phasors)
}

/// CRC-CCITT with polynomial 0x1021 and initial value 0xffff (annex B).
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

impl Endpoint for Synchrophasor {
    fn open(&mut self, now: Instant) {
        self.queues.clear();
        self.is_ready = false;
        if self.role == Role::Concentrator {
            self.write_command(SEND_CONFIGURATION_2, now);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        let length = |input: &[u8]| {
            let Some(&[sync, _, high, low]) = input.first_chunk() else { return Ok(None) };
            let length = usize::from(u16::from_be_bytes([high, low]));
            if sync != 0xaa || length < HEADER + 2 {
                return Err(invalid(format!("a frame with SYNC {sync:#04x} and size {length}")));
            }
            Ok(Some(length))
        };
        while let Some(frame) = self.queues.poll_frame(length)? {
            self.handle_frame(&frame, now)?;
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn publish(&mut self, message: &[u8], now: Instant) -> Result<(), NotSent> {
        if !self.is_ready || self.role == Role::Concentrator {
            return Err(NotSent::NotReady);
        }
        let bytes = 4 * self.phasors;
        if message.len() > bytes {
            return Err(NotSent::TooLong(bytes));
        }
        let mut body = vec![0; 2];
        body.extend(message);
        body.resize(2 + bytes + 4, 0);
        body.extend((message.len() as u16).to_be_bytes());
        write_frame(&mut self.queues.output, DATA, &body, now);
        Ok(())
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }
}

fn invalid(reason: String) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_is_that_of_the_catalogue() {
        // CRC-16/IBM-3740, also called CCITT-FALSE: the check value of "123456789".
        assert_eq!(crc(b"123456789"), 0x29b1);
    }

    #[test]
    fn a_data_frame_for_a_concentrator_of_another_length_is_refused() {
        let mut unit = Synchrophasor::new(Role::MeasurementUnit(16));
        let mut concentrator = Synchrophasor::new(Role::Concentrator);
        concentrator.is_ready = true;
        concentrator.phasors = 5;
        unit.is_ready = true;
        unit.publish(&[1; 16], Instant::ZERO).unwrap();
        let mut bytes = Vec::new();
        unit.poll_output(&mut bytes);
        let error = concentrator.handle_input(&bytes, Instant::ZERO).unwrap_err();
        assert!(error.to_string().contains("for 5 phasors"), "{error}");
    }
}
