//! Exchanges: dialogues of several steps between both ends of a flow, and polling profiles.

use serde::{Deserialize, Serialize};

use super::{FlowEnd, Load};
use crate::units::{Bytes, Duration};

/// A dialogue of several steps on one connection, which is repeated. A step begins when all data of
/// the previous step have been delivered to its writer, or, if both steps have the same writer,
/// when the previous one was written; in both cases `after` later.
///
/// The delay of an exchange is the time from its beginning until all data of its last step have
/// been delivered. Metrics count exchanges as messages; the deadline of the flow is that of an
/// exchange. An exchange begins only after the previous one is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The steps in their order. The `from` end sends the first one.
    pub steps: Vec<ExchangeStep>,
    /// Time between the beginnings of two exchanges. An exchange that is not complete in time
    /// delays the next one, whose delay counts from the time at which it was due. Absent: the next
    /// exchange begins `pause` after the previous one is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Time between the completion of an exchange and the next one. Excludes `every`.
    #[serde(default)]
    pub pause: Duration,
}

/// A step of an exchange: an application writes some data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExchangeStep {
    /// The end that writes: `from` or `to`.
    pub writer: FlowEnd,
    /// Amount of data.
    pub size: Bytes,
    /// Time after the previous step: after its data have been delivered, or, if it has the same
    /// writer, after it was written.
    #[serde(default)]
    pub after: Duration,
}

/// Modbus/TCP: a client at the `from` end reads holding registers of a server at the `to` end.
/// Sizes of the MODBUS Application Protocol Specification V1.1b3, section 6.3, with the MBAP header
/// of 7 B (MODBUS Messaging on TCP/IP Implementation Guide V1.0b, section 3.1.3): a request has
/// 12 B, a response 9 B and 2 B for each register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Modbus {
    /// Number of registers of a request, from 1 to 125.
    pub registers: u16,
    /// Time between two requests, with the rules of `exchange`.
    pub every: Duration,
    /// Time from the arrival of the request to the response at the server.
    #[serde(default)]
    pub think: Duration,
}

/// DLMS/COSEM: a client at the `from` end reads an attribute of a meter at the `to` end with the
/// service GET (IEC 62056-5-3), without ciphering, in the wrapper of IEC 62056-47 (8 B). A
/// Get-Request-Normal without selective access has 21 B; a Get-Response-Normal 12 B and the data.
/// A register, double-long-unsigned, has data of 5 B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dlms {
    /// Size of the data of a response in A-XDR, with tag and length: 5 B for a register, several
    /// hundred bytes for the rows of a load profile.
    pub data: Bytes,
    /// Time between two requests, with the rules of `exchange`.
    pub every: Duration,
    /// Time from the arrival of the request to the response at the meter.
    #[serde(default)]
    pub think: Duration,
}

impl Modbus {
    /// Registers of one request (MODBUS Application Protocol Specification V1.1b3, section 6.3).
    pub const REGISTERS_MAX: u16 = 125;

    /// The equivalent exchange.
    #[must_use]
    pub fn load(&self) -> Load {
        // Header; function, first register and number of registers.
        let request = 7 + 1 + 2 + 2;
        // Header; function, number of bytes and registers.
        let response = 7 + 1 + 1 + 2 * u64::from(self.registers);
        poll(request, response, self.every, self.think)
    }
}

impl Dlms {
    /// The equivalent exchange.
    #[must_use]
    pub fn load(&self) -> Load {
        // Wrapper; tag, choice, invoke-id-and-priority; class, instance and attribute; no access
        // selection.
        let request = 8 + 3 + (2 + 6 + 1) + 1;
        // Wrapper; tag, choice, invoke-id-and-priority; choice of the result.
        let response = 8 + 3 + 1 + self.data.get();
        poll(request, response, self.every, self.think)
    }
}

/// A request and its response.
fn poll(request: u64, response: u64, every: Duration, think: Duration) -> Load {
    let step = |writer, size, after| ExchangeStep { writer, size: Bytes::new(size), after };
    Load::Exchange(Exchange {
        steps: vec![
            step(FlowEnd::From, request, Duration::ZERO),
            step(FlowEnd::To, response, think),
        ],
        every: Some(every),
        pause: Duration::ZERO,
    })
}

impl Exchange {
    /// The time that an exchange takes without its transmissions, with the pause after it; or the
    /// period of the exchanges.
    #[must_use]
    pub fn cycle(&self) -> Duration {
        let steps = self.steps.iter().map(|step| step.after);
        self.every.unwrap_or_else(|| steps.fold(self.pause, |sum, after| sum + after))
    }

    /// Whether the steps alternate between both ends, and the `to` end sends the last one.
    #[must_use]
    pub fn alternates(&self) -> bool {
        let is_request = |index: usize| index.is_multiple_of(2);
        let mut steps = self.steps.iter().enumerate();
        self.steps.len().is_multiple_of(2)
            && steps.all(|(index, step)| (step.writer == FlowEnd::From) == is_request(index))
    }
}
