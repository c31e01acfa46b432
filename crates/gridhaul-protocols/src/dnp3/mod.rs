//! DNP3 (IEEE 1815-2012) over TCP: an outstation with events, and a master that receives them
//! unsolicited or polls for them.
//!
//! A message is one event of type octet string (group 111), or several: the first byte of each is 1
//! for the last one. Neither control, nor time synchronisation, nor static data, nor secure
//! authentication exist here: an outstation answers requests for them with the indication of a
//! function that is not supported, as a device does.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::dnp3::{Role, Station};
//! use gridhaul_scenario::units::Instant;
//!
//! let mut outstation = Station::new(Role::Outstation);
//! outstation.open(Instant::ZERO);
//! let mut bytes = Vec::new();
//! outstation.poll_output(&mut bytes);
//! // An unsolicited response without events, in a frame of the link layer.
//! assert_eq!(bytes[..2], [0x05, 0x64]);
//! assert!(!outstation.is_ready(), "the master has not enabled unsolicited responses");
//! ```

mod link;
mod request;

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use self::request::Named;
use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "dnp3";

/// Longest message.
pub const MESSAGE_MAX: usize = 8_192;

/// Shortest interval in which a master polls, so that requests do not take all of a slow link.
pub const POLL_MIN: Duration = Duration::from_millis(20);

/// Longest fragment of the application layer (clause 4.1.2).
const FRAGMENT_MAX: usize = 2_048;

/// Bytes of a message in an object: at most 255 with the first one.
const CHUNK: usize = 254;

/// Events that wait, so that memory stays bounded.
const EVENTS_MAX: usize = 100_000;

/// Time for an answer or a confirmation.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Application control (clause 4.2.2.1): first and final fragment, confirmation requested,
/// unsolicited.
const FIR_FIN: u8 = 0xc0;
const CON: u8 = 0x20;
const UNS: u8 = 0x10;

/// Function codes (clause 4.2.2.4).
const CONFIRM: u8 = 0;
const READ: u8 = 1;
const WRITE: u8 = 2;
const ENABLE_UNSOLICITED: u8 = 20;
const DISABLE_UNSOLICITED: u8 = 21;
const RESPONSE: u8 = 129;
const UNSOLICITED_RESPONSE: u8 = 130;

/// Requests that are not answered: direct operation, freezing and authentication without
/// acknowledgement.
const WITHOUT_RESPONSE: [u8; 5] = [6, 8, 10, 12, 33];

/// Internal indications of the first octet: class 1 events are available, and the device has
/// restarted (clause 4.2.2.6).
const CLASS_1_EVENTS: u8 = 0x02;
const DEVICE_RESTART: u8 = 0x80;

/// All objects of class 1 (group 60, variation 2, qualifier 6), and octet string events with a
/// count and an index of one byte.
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
    /// Control field of the response that awaits a confirmation, or of the request that awaits a
    /// response, and its time.
    awaited: Option<(u8, Instant)>,
    /// Outstation: unsolicited responses are enabled, or a poll has come. Master: the outstation
    /// has answered.
    is_ready: bool,
    is_unsolicited: bool,
    /// Events that have not been sent.
    events: VecDeque<Vec<u8>>,
    /// Outstation: no master has cleared the indication of its start. Master: has not tried to
    /// clear that of the outstation.
    is_restarted: bool,
    /// Master: function of the last request.
    requested: u8,
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
            is_restarted: true,
            requested: CONFIRM,
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

    /// Master: sends a request for these objects.
    fn request(&mut self, function: u8, objects: &[u8], now: Instant) {
        let control = FIR_FIN | self.next_sequence();
        self.awaited = Some((control, now));
        self.requested = function;
        self.write(&[&[control, function], objects].concat());
    }

    /// Outstation: sends at most `events` events, as many as a fragment holds, and awaits a
    /// confirmation if there are any.
    fn respond(&mut self, function: u8, control: u8, named: Named, now: Instant) {
        let mut fragment = vec![control, function, 0, named.indications];
        for _ in 0..named.events {
            let Some(event) = self.events.front() else { break };
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
        }
        if has_events {
            self.awaited = Some((fragment[0], now));
        }
        if !self.events.is_empty() {
            fragment[2] |= CLASS_1_EVENTS;
        }
        if self.is_restarted {
            fragment[2] |= DEVICE_RESTART;
        }
        self.write(&fragment);
    }

    /// Outstation: sends events unsolicited if the master permits it and has confirmed the earlier
    /// ones.
    fn send_events(&mut self, now: Instant) {
        if self.is_unsolicited && self.awaited.is_none() && !self.events.is_empty() {
            let control = FIR_FIN | UNS | self.next_sequence();
            let all = Named { events: usize::MAX, indications: 0 };
            self.respond(UNSOLICITED_RESPONSE, control, all, now);
        }
    }

    /// Outstation: handles a request, and answers it unless its function has no response.
    fn handle_request(&mut self, [function, control]: [u8; 2], objects: &[u8], now: Instant) {
        let mut named = Named::default();
        match function {
            CONFIRM => {
                // A confirmation that nothing awaits is ignored (clause 4.2.2.2).
                if self
                    .awaited
                    .is_some_and(|(awaited, _)| awaited & !(CON | FIR_FIN) == control & !FIR_FIN)
                {
                    self.awaited = None;
                }
                return self.send_events(now);
            }
            READ => {
                named = request::named(objects);
                self.is_ready |= named.events > 0;
            }
            WRITE if objects == request::CLEAR_RESTART => self.is_restarted = false,
            WRITE => named.indications = request::OBJECT_UNKNOWN,
            ENABLE_UNSOLICITED | DISABLE_UNSOLICITED => {
                let Named { events, indications } = request::named(objects);
                named.indications = indications;
                if events > 0 {
                    self.is_unsolicited = function == ENABLE_UNSOLICITED;
                    self.is_ready |= self.is_unsolicited;
                }
            }
            function if WITHOUT_RESPONSE.contains(&function) || function >= RESPONSE => return,
            _ => named.indications = request::NO_FUNCTION_CODE_SUPPORT,
        }
        self.respond(RESPONSE, FIR_FIN | control & 0xf, named, now);
        self.send_events(now);
    }

    fn handle_fragment(&mut self, fragment: &[u8], now: Instant) -> Result<(), EndpointError> {
        let [control, function, ref rest @ ..] = *fragment else {
            return Err(invalid("a fragment without header".into()));
        };
        let poll = match self.role {
            Role::Outstation => {
                self.handle_request([function, control], rest, now);
                return Ok(());
            }
            Role::Master { poll } => poll,
        };
        if !matches!(function, RESPONSE | UNSOLICITED_RESPONSE) {
            return Err(invalid(format!("an unexpected function code {function}")));
        }
        let [indications, _, ref objects @ ..] = *rest else {
            return Err(invalid("a response without IIN".into()));
        };
        self.handle_events(objects)?;
        if control & CON != 0 {
            let answer = FIR_FIN | control & (UNS | 0xf);
            self.write(&[answer, CONFIRM]);
        }
        self.handle_progress(function, indications, poll, now);
        Ok(())
    }

    /// Master: the next request after a response.
    fn handle_progress(
        &mut self,
        function: u8,
        indications: u8,
        poll: Option<Duration>,
        now: Instant,
    ) {
        if function == RESPONSE {
            self.awaited = None;
            if self.requested != WRITE {
                self.is_ready = true;
                self.next_poll = now + poll.unwrap_or(Duration::ZERO);
            }
        }
        if self.awaited.is_some() {
            return;
        }
        if indications & DEVICE_RESTART != 0 && std::mem::take(&mut self.is_restarted) {
            self.request(WRITE, &request::CLEAR_RESTART, now);
        } else if !self.is_ready {
            // After the first response of an outstation that has started.
            let function = if poll.is_some() { READ } else { ENABLE_UNSOLICITED };
            self.request(function, &CLASS_1, now);
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
        let is_restarted = self.is_restarted || self.is_master();
        *self = Self { queues, is_restarted, ..Self::new(self.role) };
        if self.role == Role::Outstation {
            // An outstation that has started sends an empty unsolicited response (clause 5.1.1.1).
            // Its confirmation is not awaited: a master that only polls may ignore it.
            let control = FIR_FIN | UNS | self.next_sequence();
            self.respond(UNSOLICITED_RESPONSE, control, Named::default(), now);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        while let Some(frame) = self.queues.poll_frame(link::frame_length)? {
            let is_master = self.is_master();
            let link::Contents { fragment, answer } = self.reassembly.read(&frame, is_master)?;
            if let Some(function) = answer {
                link::write_answer(&mut self.queues.output, function, is_master);
            }
            if let Some(fragment) = fragment {
                self.handle_fragment(&fragment, now)?;
            }
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), EndpointError> {
        if self.awaited.is_some_and(|(_, since)| now >= since + ANSWER_WITHIN) {
            let (timer, within) = ("response", ANSWER_WITHIN);
            return Err(EndpointError::Timeout { protocol: NAME, timer, within });
        }
        let is_polling = matches!(self.role, Role::Master { poll: Some(_) });
        if is_polling && self.is_ready && self.awaited.is_none() && now >= self.next_poll {
            self.request(READ, &CLASS_1, now);
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

#[cfg(test)]
mod tests;
