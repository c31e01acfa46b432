//! DNP3 (IEEE 1815-2012) over TCP: an outstation with events, and a master that receives them unsolicited or polls for them.
//!
//! A message is one event of type octet string (group 111), or several: the first byte of each is 1 for the last one. Neither
//! control, nor time synchronisation, nor static data, nor secure authentication exist here.

mod link;

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "dnp3";

/// Longest message.
pub const MESSAGE_MAX: usize = 8_192;

/// Longest fragment of the application layer (clause 4.1.2).
const FRAGMENT_MAX: usize = 2_048;

/// Bytes of a message in an object: at most 255 with the first one.
const CHUNK: usize = 254;

/// Events that wait, so that memory stays bounded.
const EVENTS_MAX: usize = 100_000;

/// Time for an answer or a confirmation.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Application control (clause 4.2.2.1): first and final fragment, confirmation requested, unsolicited.
const FIR_FIN: u8 = 0xc0;
const CON: u8 = 0x20;
const UNS: u8 = 0x10;

/// Function codes (clause 4.2.2.4).
const CONFIRM: u8 = 0;
const READ: u8 = 1;
const ENABLE_UNSOLICITED: u8 = 20;
const RESPONSE: u8 = 129;
const UNSOLICITED_RESPONSE: u8 = 130;

/// Internal indications: class 1 events are available (clause 4.2.2.6).
const CLASS_1_EVENTS: u8 = 0x02;

/// All objects of class 1 (group 60, variation 2, qualifier 6), and octet string events with a count and an index of one byte.
const CLASS_1: [u8; 3] = [60, 2, 0x06];
const OCTET_STRING_EVENT: u8 = 111;
const COUNT_AND_INDEX: u8 = 0x17;

/// Role of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reports events.
    Outstation,
    /// Receives events: unsolicited, or by polls in this interval.
    Master {
        /// Interval of polls; `None` for unsolicited responses.
        poll: Option<Duration>,
    },
}

/// One end of a connection.
#[derive(Debug)]
pub struct Station {
    role: Role,
    queues: Queues,
    reassembly: link::Reassembly,
    segment: u8,
    /// Number of the next request or unsolicited response, 4 bits.
    sequence: u8,
    /// Control field of the response that awaits a confirmation, or of the request that awaits a response, and its time.
    awaited: Option<(u8, Instant)>,
    /// Outstation: unsolicited responses are enabled, or a poll has come. Master: the outstation has answered.
    is_ready: bool,
    is_unsolicited: bool,
    /// Events that have not been sent.
    events: VecDeque<Vec<u8>>,
    /// Master: time of the next poll.
    next_poll: Instant,
    /// Master: chunks of a message whose last one has not arrived.
    partial: Vec<u8>,
}

impl Station {
    /// An end that is not connected.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            queues: Queues::default(),
            reassembly: link::Reassembly::default(),
            segment: 0,
            sequence: 0,
            awaited: None,
            is_ready: false,
            is_unsolicited: false,
            events: VecDeque::new(),
            next_poll: Instant::ZERO,
            partial: Vec::new(),
        }
    }

    const fn is_master(&self) -> bool {
        matches!(self.role, Role::Master { .. })
    }

    fn write(&mut self, fragment: &[u8]) {
        let is_master = self.is_master();
        link::write(&mut self.queues.output, fragment, is_master, &mut self.segment);
    }

    fn next_sequence(&mut self) -> u8 {
        let sequence = self.sequence;
        self.sequence = (sequence + 1) & 0xf;
        sequence
    }

    /// Master: sends a request for class 1.
    fn request(&mut self, function: u8, now: Instant) {
        let control = FIR_FIN | self.next_sequence();
        self.awaited = Some((control, now));
        self.write(&[&[control, function], &CLASS_1[..]].concat());
    }

    /// Outstation: sends as many events as a fragment holds, and awaits a confirmation if there are any.
    fn respond(&mut self, function: u8, control: u8, now: Instant) {
        let mut fragment = vec![control, function, 0, 0];
        while let Some(event) = self.events.front() {
            if fragment.len() + 5 + event.len() > FRAGMENT_MAX {
                break;
            }
            // One object with index 0.
            fragment.extend([OCTET_STRING_EVENT, event.len() as u8, COUNT_AND_INDEX, 1, 0]);
            fragment.extend(event);
            self.events.pop_front();
        }
        let has_events = fragment.len() > 4;
        if has_events || function == UNSOLICITED_RESPONSE {
            fragment[0] |= CON;
            self.awaited = Some((fragment[0], now));
        }
        if !self.events.is_empty() {
            fragment[2] = CLASS_1_EVENTS;
        }
        self.write(&fragment);
    }

    /// Outstation: sends events unsolicited if the master permits it and has confirmed the earlier ones.
    fn send_events(&mut self, now: Instant) {
        if self.is_unsolicited && self.awaited.is_none() && !self.events.is_empty() {
            let control = FIR_FIN | UNS | self.next_sequence();
            self.respond(UNSOLICITED_RESPONSE, control, now);
        }
    }

    fn handle_fragment(&mut self, fragment: &[u8], now: Instant) -> Result<(), EndpointError> {
        let [control, function, ref rest @ ..] = *fragment else {
            return Err(invalid("a fragment without header".into()));
        };
        match (self.role, function) {
            (Role::Outstation, CONFIRM) => {
                // A confirmation that nothing awaits is ignored (clause 4.2.2.2).
                if self
                    .awaited
                    .is_some_and(|(awaited, _)| awaited & !(CON | FIR_FIN) == control & !FIR_FIN)
                {
                    self.awaited = None;
                }
                self.send_events(now);
            }
            (Role::Outstation, ENABLE_UNSOLICITED) => {
                self.write(&[FIR_FIN | control & 0xf, RESPONSE, 0, 0]);
                (self.is_ready, self.is_unsolicited) = (true, true);
                self.send_events(now);
            }
            (Role::Outstation, READ) => {
                self.is_ready = true;
                self.respond(RESPONSE, FIR_FIN | control & 0xf, now);
            }
            (Role::Master { poll }, RESPONSE | UNSOLICITED_RESPONSE) => {
                let objects =
                    rest.get(2..).ok_or_else(|| invalid("a response without IIN".into()))?;
                self.handle_events(objects)?;
                if control & CON != 0 {
                    let answer = FIR_FIN | control & (UNS | 0xf);
                    self.write(&[answer, CONFIRM]);
                }
                self.handle_progress(poll, function, now);
            }
            (_, other) => return Err(invalid(format!("an unexpected function code {other}"))),
        }
        Ok(())
    }

    /// Master: the next request after a response.
    fn handle_progress(&mut self, poll: Option<Duration>, function: u8, now: Instant) {
        match (function, poll) {
            (RESPONSE, _) => {
                self.awaited = None;
                self.is_ready = true;
                self.next_poll = now + poll.unwrap_or(Duration::ZERO);
            }
            // The first response of an outstation that has started.
            (_, None) if !self.is_ready && self.awaited.is_none() => {
                self.request(ENABLE_UNSOLICITED, now);
            }
            (_, Some(_)) if !self.is_ready && self.awaited.is_none() => self.request(READ, now),
            _ => {}
        }
    }

    /// Appends octet strings to messages.
    fn handle_events(&mut self, mut objects: &[u8]) -> Result<(), EndpointError> {
        while let [group, length, qualifier, count, rest @ ..] = objects {
            if (*group, *qualifier) != (OCTET_STRING_EVENT, COUNT_AND_INDEX) || *length == 0 {
                return Err(invalid(format!(
                    "objects of group {group} with qualifier {qualifier:#04x}"
                )));
            }
            let size = 1 + usize::from(*length);
            let all = rest.split_at_checked(usize::from(*count) * size);
            let (strings, rest) = all.ok_or_else(|| invalid("an object that is cut off".into()))?;
            for string in strings.chunks_exact(size) {
                self.partial.extend(&string[2..]);
                if string[1] == 1 {
                    self.queues.messages.push_back(std::mem::take(&mut self.partial));
                } else if self.partial.len() > MESSAGE_MAX {
                    return Err(invalid(format!("a message above {MESSAGE_MAX} B")));
                }
            }
            objects = rest;
        }
        if objects.is_empty() {
            Ok(())
        } else {
            Err(invalid("an object header that is cut off".into()))
        }
    }
}

impl Endpoint for Station {
    fn open(&mut self, now: Instant) {
        let mut queues = std::mem::take(&mut self.queues);
        queues.clear();
        *self = Self { queues, ..Self::new(self.role) };
        if self.role == Role::Outstation {
            // An outstation that has started sends an empty unsolicited response (clause 5.1.1.1).
            let control = FIR_FIN | UNS | self.next_sequence();
            self.respond(UNSOLICITED_RESPONSE, control, now);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        while let Some(frame) = self.queues.poll_frame(link::frame_length)? {
            let is_master = self.is_master();
            if let Some(fragment) = self.reassembly.read(&frame, is_master)? {
                self.handle_fragment(&fragment, now)?;
            }
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), EndpointError> {
        if self.awaited.is_some_and(|(_, since)| now >= since + ANSWER_WITHIN) {
            let within_s = ANSWER_WITHIN.as_nanos() / 1_000_000_000;
            return Err(EndpointError::Timeout { protocol: NAME, timer: "response", within_s });
        }
        let is_polling = matches!(self.role, Role::Master { poll: Some(_) });
        if is_polling && self.is_ready && self.awaited.is_none() && now >= self.next_poll {
            self.request(READ, now);
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn publish(&mut self, message: &[u8], now: Instant) -> Result<(), NotSent> {
        if !self.is_ready || self.is_master() {
            return Err(NotSent::NotReady);
        }
        if message.len() > MESSAGE_MAX {
            return Err(NotSent::TooLong(MESSAGE_MAX));
        }
        if self.events.len() >= EVENTS_MAX {
            return Err(NotSent::WindowFull);
        }
        let count = message.len().div_ceil(CHUNK).max(1);
        for number in 0..count {
            let chunk = &message[number * CHUNK..message.len().min((number + 1) * CHUNK)];
            let last = u8::from(number + 1 == count);
            self.events.push_back([&[last], chunk].concat());
        }
        self.send_events(now);
        Ok(())
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }
}

fn invalid(reason: String) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason }
}
