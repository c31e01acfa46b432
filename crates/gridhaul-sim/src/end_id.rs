//! Identifiers of connection ends.

use gridhaul_scenario::scenario::FlowEnd;

/// An end of a flow. The number is twice that of the flow, plus one for the `to` end, so that it is
/// an index into lists of all ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndId(u32);

impl EndId {
    #[inline]
    pub(crate) const fn of(flow: u32, end: FlowEnd) -> Self {
        Self(2 * flow + end as u32)
    }

    /// The end at an index into a list of all ends.
    #[inline]
    pub(crate) const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Index into a list of all ends.
    #[inline]
    pub(crate) const fn index(self) -> u32 {
        self.0
    }

    /// Number of the flow.
    #[inline]
    pub(crate) const fn flow(self) -> u32 {
        self.0 / 2
    }

    /// Index into a pair of values of the `from` and the `to` end.
    #[inline]
    pub(crate) const fn side(self) -> usize {
        (self.0 % 2) as usize
    }

    /// Which end of its flow this is.
    #[inline]
    pub(crate) const fn end(self) -> FlowEnd {
        if self.is_from() { FlowEnd::From } else { FlowEnd::To }
    }

    /// Whether this is the `from` end, which opens the connection.
    #[inline]
    pub(crate) const fn is_from(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// The other end of the same flow.
    #[inline]
    pub(crate) const fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }
}
