//! IEC 60870-5-104: measured values of a controlled station.

use serde::{Deserialize, Serialize};

use super::FlowEnd;
use crate::units::Duration;

/// IEC 60870-5-104: a controlled station reports measured values in I frames; a controlling station
/// at the other end acknowledges them in S frames. A frame that is ready while `k` frames have no
/// acknowledgement waits at the controlled station; the delay of a message, from the time at which
/// its values were ready, contains this wait. At most `k` frames are sent in a round trip of `w`
/// frames and their acknowledgement.
///
/// Sizes: an I frame has 12 B (start, length, control field, header of the ASDU) and 15 B for each
/// value of type M_ME_TF_1 (short floating-point number with time tag); S and U frames have 6 B.
///
/// With `t1` or `controlled = "to"`, connections follow each other (`reconnect`), each begins with
/// STARTDT, and frames without an acknowledgement are transmitted again on the next one. Without
/// these keys, there is one connection without a timeout, on which data transfer has been started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Iec104 {
    /// End of the flow at which the controlled station is. The `from` end opens connections; in the
    /// standard, this is the controlling station: `"to"`. Stations without an address of their own,
    /// such as those behind the NAT of a mobile network, open them themselves: `"from"`. Absent:
    /// `"from"`.
    #[serde(default = "from_end", skip_serializing_if = "is_from_end")]
    pub controlled: FlowEnd,
    /// Number of measured values in a frame, from 1 to 16.
    pub values: u8,
    /// Time between two frames of a station.
    pub every: Duration,
    /// Whether all stations of a group send at the same times. Otherwise each has its own random
    /// phase.
    #[serde(default)]
    pub synchronised: bool,
    /// Largest number of I frames without an acknowledgement, after which the controlled station
    /// waits.
    #[serde(default = "twelve")]
    pub k: u16,
    /// Number of received I frames after which the controlling station acknowledges.
    #[serde(default = "eight")]
    pub w: u16,
    /// Time for the acknowledgement of an I frame, and for the confirmation of STARTDT and of a
    /// test frame, after which the station that waits closes the connection (RST); 15 s in the
    /// standard. More than `t2`, less than `t3`. The timeout of an attempt to connect, t0, is the
    /// key `timeout` of `reconnect`. Absent: no timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t1: Option<Duration>,
    /// Time after which the controlling station acknowledges fewer than `w` frames, from the first
    /// of them.
    #[serde(default = "ten_seconds")]
    pub t2: Duration,
    /// Time without a frame of the peer after which a station sends a test frame (TESTFR), which
    /// the peer confirms.
    #[serde(default = "twenty_seconds")]
    pub t3: Duration,
}

impl Iec104 {
    /// Values in a frame: an ASDU has at most 249 B, of which 6 B are its header.
    pub const VALUES_MAX: u8 = 16;

    /// Largest `k`: frame numbers have 15 bits.
    pub const WINDOW_MAX: u16 = 32_767;

    /// Size of an S or U frame: start, length and control field.
    pub const CONTROL_FRAME: u64 = 6;

    /// Whether connections follow each other, on each of which the stations start data transfer.
    #[must_use]
    pub const fn starts_transfer(&self) -> bool {
        self.t1.is_some() || matches!(self.controlled, FlowEnd::To)
    }

    /// Size of an I frame.
    #[must_use]
    pub fn frame_size(&self) -> u64 {
        // Type, number of objects, cause and originator, common address.
        let header = Self::CONTROL_FRAME + 6;
        // Address, value, quality, time tag.
        header + (3 + 4 + 1 + 7) * u64::from(self.values)
    }
}

const fn from_end() -> FlowEnd {
    FlowEnd::From
}
fn is_from_end(end: &FlowEnd) -> bool {
    *end == FlowEnd::From
}
const fn twelve() -> u16 {
    12
}
const fn eight() -> u16 {
    8
}
const fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}
const fn twenty_seconds() -> Duration {
    Duration::from_secs(20)
}
