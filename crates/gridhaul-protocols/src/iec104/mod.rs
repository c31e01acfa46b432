//! IEC 60870-5-104: a controlled station that reports measured values spontaneously, and a
//! controlling station.
//!
//! A message is a sequence of information objects of type M_ME_TF_1 (short floating point number
//! with time tag), four bytes in each: first the length, then the bytes. The address of an object
//! is its position, from 1. Both stations follow the numbering, the window `k`, the
//! acknowledgements `w` and the timers t1 to t3 of the standard.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::iec104::{Role, Station, Window};
//! use gridhaul_scenario::units::Instant;
//!
//! let mut station = Station::new(Role::Controlling, Window::STANDARD);
//! station.open(Instant::ZERO);
//! let mut bytes = Vec::new();
//! station.poll_output(&mut bytes);
//! // STARTDT act.
//! assert_eq!(bytes, [0x68, 4, 0x07, 0, 0, 0]);
//! ```

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "iec-104";

/// Start byte of an APDU, and the limits of the length after it: a control field of 4 bytes and at
/// most 249 bytes of an ASDU (section 5).
pub(crate) const START: u8 = 0x68;
pub(crate) const LENGTH_MIN: u8 = 4;
pub(crate) const LENGTH_MAX: u8 = 253;

/// Longest message.
pub const MESSAGE_MAX: usize = 8_192;

/// Time for the acknowledgement of a frame (default of t1).
const T1: Duration = Duration::from_secs(15);

/// Time after which a frame is acknowledged without further ones (default of t2).
const T2: Duration = Duration::from_secs(10);

/// Time without a frame after which the connection is tested (default of t3).
const T3: Duration = Duration::from_secs(20);

/// Frames that wait for the window, so that memory stays bounded.
const WAITING_MAX: usize = 100_000;

/// Objects in a frame: 249 bytes of an ASDU, of which 6 are its header (section 5).
const OBJECTS_MAX: usize = 16;

/// Bytes of an object: address, value, quality, time.
const OBJECT: usize = 3 + 4 + 1 + 7;

/// Type identification of M_ME_TF_1 (IEC 60870-5-101, section 7.2.1.1).
const M_ME_TF_1: u8 = 36;

/// Cause of transmission: spontaneous (section 7.2.3).
const SPONTANEOUS: u8 = 3;

/// U frames (section 5.3).
const STARTDT_ACT: u8 = 0x07;
const STARTDT_CON: u8 = 0x0b;
const STOPDT_ACT: u8 = 0x13;
const STOPDT_CON: u8 = 0x23;
const TESTFR_ACT: u8 = 0x43;
const TESTFR_CON: u8 = 0x83;

/// Limits of I frames of IEC 60870-5-104 without an acknowledgement (section 9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Largest number of frames without an acknowledgement, after which the controlled station
    /// waits.
    pub k: u16,
    /// Number of received frames after which the controlling station acknowledges.
    pub w: u16,
}

impl Window {
    /// The defaults of the standard.
    pub const STANDARD: Self = Self { k: 12, w: 8 };

    /// Largest values: the numbers of frames have 15 bits.
    pub const MAX: u16 = 32_767;

    /// Checks both limits. With `w` above `k`, the controlled station would wait for an
    /// acknowledgement that is only due by a timer.
    ///
    /// # Errors
    /// Expected value.
    pub fn check(&self) -> Result<(), String> {
        let Self { k, w } = *self;
        let is_possible = (1..=Self::MAX).contains(&k) && (1..=k).contains(&w);
        is_possible.then_some(()).ok_or_else(|| {
            format!(
                "w is {w} and k is {k}; expected k from 1 to {}, and w from 1 to k (the standard \
                 recommends at most two thirds of k)",
                Self::MAX
            )
        })
    }
}

/// Role of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Requests data and receives them.
    Controlling,
    /// Reports data after STARTDT.
    Controlled,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Station {
    role: Role,
    window: Window,
    queues: Queues,
    is_started: bool,
    /// Number of the next I frame: V(S), 15 bits.
    send: u16,
    /// Number of the next expected I frame: V(R).
    receive: u16,
    /// Send times of the I frames without an acknowledgement.
    sent_at: VecDeque<Instant>,
    /// Frames that wait until the window has space: ASDUs.
    waiting: VecDeque<Vec<u8>>,
    /// Received I frames that are not acknowledged, and when the first of them arrived.
    unacknowledged_received: u16,
    first_unacknowledged_at: Instant,
    /// Time of the last frame of the peer.
    last_received: Instant,
    /// Time of a U frame that awaits its confirmation.
    unconfirmed_since: Option<Instant>,
    /// A message whose last objects have not arrived.
    partial: Option<PartialMessage>,
}

/// A message of which not all objects have arrived.
#[derive(Debug)]
struct PartialMessage {
    /// Length of the whole message.
    length: usize,
    bytes: Vec<u8>,
}

impl Station {
    /// A station that is not connected.
    #[must_use]
    pub fn new(role: Role, window: Window) -> Self {
        Self {
            role,
            window,
            queues: Queues::default(),
            is_started: false,
            send: 0,
            receive: 0,
            sent_at: VecDeque::new(),
            waiting: VecDeque::new(),
            unacknowledged_received: 0,
            first_unacknowledged_at: Instant::ZERO,
            last_received: Instant::ZERO,
            unconfirmed_since: None,
            partial: None,
        }
    }

    fn handle_frame(&mut self, frame: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.last_received = now;
        let control = [frame[2], frame[3], frame[4], frame[5]];
        let acknowledged = u16::from_le_bytes([control[2], control[3]]) >> 1;
        match control[0] & 3 {
            0 | 2 => {
                self.handle_acknowledgement(acknowledged)?;
                let number = u16::from_le_bytes([control[0], control[1]]) >> 1;
                if !self.is_started {
                    return Err(invalid("an I frame before STARTDT".into()));
                }
                if number != self.receive {
                    return Err(invalid(format!("I frame {number} in place of {}", self.receive)));
                }
                self.receive = (self.receive + 1) % 0x8000;
                if self.unacknowledged_received == 0 {
                    self.first_unacknowledged_at = now;
                }
                self.unacknowledged_received += 1;
                self.handle_asdu(&frame[6..])?;
                if self.unacknowledged_received >= self.window.w {
                    self.acknowledge();
                }
            }
            1 => self.handle_acknowledgement(acknowledged)?,
            _ => self.handle_unnumbered(control[0])?,
        }
        self.fill_window(now);
        Ok(())
    }

    fn handle_unnumbered(&mut self, control: u8) -> Result<(), EndpointError> {
        match (control, self.role) {
            (TESTFR_ACT, _) => self.write_unnumbered(TESTFR_CON),
            (TESTFR_CON, _) => self.unconfirmed_since = None,
            (STARTDT_ACT, Role::Controlled) => {
                self.is_started = true;
                self.write_unnumbered(STARTDT_CON);
            }
            (STARTDT_CON, Role::Controlling) => {
                self.is_started = true;
                self.unconfirmed_since = None;
            }
            (STOPDT_ACT, Role::Controlled) => {
                self.is_started = false;
                self.write_unnumbered(STOPDT_CON);
            }
            _ => return Err(invalid(format!("an unexpected U frame {control:#04x}"))),
        }
        Ok(())
    }

    /// The peer has received all frames before this number.
    fn handle_acknowledgement(&mut self, number: u16) -> Result<(), EndpointError> {
        let open = self.sent_at.len() as u16;
        let left = (self.send + 0x8000 - number) % 0x8000;
        if left > open {
            return Err(invalid(format!("an acknowledgement of {number}, which was not sent")));
        }
        self.sent_at.drain(..usize::from(open - left));
        Ok(())
    }

    /// Appends the objects of an ASDU to the message. ASDUs of other types are not of this
    /// measurement.
    fn handle_asdu(&mut self, asdu: &[u8]) -> Result<(), EndpointError> {
        let Some((header, objects)) = asdu.split_first_chunk::<6>() else {
            return Err(invalid("an ASDU without header".into()));
        };
        if header[0] != M_ME_TF_1 {
            return Ok(());
        }
        let (count, is_sequence) = (usize::from(header[1] & 0x7f), header[1] & 0x80 != 0);
        if is_sequence || objects.len() != count * OBJECT {
            return Err(invalid(format!("{} B are not {count} objects", objects.len())));
        }
        for object in objects.chunks_exact(OBJECT) {
            let address =
                usize::from(object[0]) | usize::from(object[1]) << 8 | usize::from(object[2]) << 16;
            let value = [object[3], object[4], object[5], object[6]];
            self.handle_object(address, value);
        }
        Ok(())
    }

    /// Objects of another station, or out of order, are no message: they are dropped, and the
    /// message counts as lost.
    fn handle_object(&mut self, address: usize, value: [u8; 4]) {
        if address == 1 {
            let length = u32::from_le_bytes(value) as usize;
            self.partial =
                (length <= MESSAGE_MAX).then(|| PartialMessage { length, bytes: Vec::new() });
        } else {
            match &mut self.partial {
                Some(PartialMessage { bytes, .. }) if bytes.len() / 4 + 2 == address => {
                    bytes.extend(value);
                }
                _ => self.partial = None,
            }
        }
        let is_complete = |partial: &mut PartialMessage| partial.bytes.len() >= partial.length;
        if let Some(PartialMessage { length, mut bytes }) = self.partial.take_if(is_complete) {
            bytes.truncate(length);
            self.queues.messages.push_back(bytes);
        }
    }

    /// Sends waiting frames while fewer than `k` are without an acknowledgement.
    fn fill_window(&mut self, now: Instant) {
        while self.is_started && self.sent_at.len() < usize::from(self.window.k) {
            let Some(asdu) = self.waiting.pop_front() else { break };
            let [send, receive] = [self.send << 1, self.receive << 1].map(u16::to_le_bytes);
            let length = asdu.len() as u8 + 4;
            self.queues.output.extend([START, length, send[0], send[1], receive[0], receive[1]]);
            self.queues.output.extend(asdu);
            self.send = (self.send + 1) % 0x8000;
            self.unacknowledged_received = 0;
            self.sent_at.push_back(now);
        }
    }

    /// An S frame.
    fn acknowledge(&mut self) {
        let [low, high] = (self.receive << 1).to_le_bytes();
        self.queues.output.extend([START, LENGTH_MIN, 1, 0, low, high]);
        self.unacknowledged_received = 0;
    }

    fn write_unnumbered(&mut self, control: u8) {
        self.queues.output.extend([START, LENGTH_MIN, control, 0, 0, 0]);
    }
}

impl Endpoint for Station {
    fn open(&mut self, now: Instant) {
        let mut queues = std::mem::take(&mut self.queues);
        queues.clear();
        *self = Self { queues, last_received: now, ..Self::new(self.role, self.window) };
        if self.role == Role::Controlling {
            self.write_unnumbered(STARTDT_ACT);
            self.unconfirmed_since = Some(now);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        let length = |input: &[u8]| match *input {
            [] => Ok(None),
            [start, ..] if start != START => Err(invalid(format!("a start byte {start:#04x}"))),
            [_] => Ok(None),
            [_, length @ LENGTH_MIN..=LENGTH_MAX, ..] => Ok(Some(2 + usize::from(length))),
            [_, length, ..] => Err(invalid(format!("a frame length of {length}"))),
        };
        while let Some(frame) = self.queues.poll_frame(length)? {
            self.handle_frame(&frame, now)?;
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), EndpointError> {
        let overdue = |since: Option<&Instant>| since.is_some_and(|&since| now >= since + T1);
        if overdue(self.sent_at.front()) || overdue(self.unconfirmed_since.as_ref()) {
            return Err(EndpointError::Timeout { protocol: NAME, timer: "t1", within: T1 });
        }
        if self.unacknowledged_received > 0 && now >= self.first_unacknowledged_at + T2 {
            self.acknowledge();
        }
        if self.unconfirmed_since.is_none() && now >= self.last_received + T3 {
            self.write_unnumbered(TESTFR_ACT);
            self.unconfirmed_since = Some(now);
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.is_started
    }

    fn publish(&mut self, message: &[u8], now: Instant) -> Result<(), NotSent> {
        if !self.is_started {
            return Err(NotSent::NotReady);
        }
        if message.len() > MESSAGE_MAX {
            return Err(NotSent::TooLong(MESSAGE_MAX));
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(NotSent::WindowFull);
        }
        self.waiting.extend(asdus(message, now));
        self.fill_window(now);
        Ok(())
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }
}

/// The ASDUs of a message.
fn asdus(message: &[u8], now: Instant) -> Vec<Vec<u8>> {
    let length = (message.len() as u32).to_le_bytes();
    let value = |bytes: &[u8]| {
        let mut value = [0; 4];
        value[..bytes.len()].copy_from_slice(bytes);
        value
    };
    let values: Vec<_> = std::iter::once(length).chain(message.chunks(4).map(value)).collect();
    let time = time_tag(now);
    let mut address = 0_u32;
    let asdu = |values: &[[u8; 4]]| {
        // Type, number of objects, cause and originator, common address 1.
        let mut asdu = vec![M_ME_TF_1, values.len() as u8, SPONTANEOUS, 0, 1, 0];
        for value in values {
            address += 1;
            asdu.extend(&address.to_le_bytes()[..3]);
            asdu.extend(value);
            // Quality descriptor: valid.
            asdu.push(0);
            asdu.extend(time);
        }
        asdu
    };
    values.chunks(OBJECTS_MAX).map(asdu).collect()
}

/// CP56Time2a (IEC 60870-5-101, section 7.2.6.18), counted from the start of the clock, and
/// therefore marked as invalid: the clock of a measurement is not that of the day.
fn time_tag(now: Instant) -> [u8; 7] {
    let millis = now.since(Instant::ZERO).as_nanos() / 1_000_000;
    let minutes = millis / 60_000;
    let [low, high] = ((millis % 60_000) as u16).to_le_bytes();
    let invalid = 0x80;
    [low, high, (minutes % 60) as u8 | invalid, (minutes / 60 % 24) as u8, 1, 1, 0]
}

fn invalid(reason: String) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason }
}
