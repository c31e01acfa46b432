//! Assumptions of the model: those of the papers, or those of TCP implementations.

/// The assumptions about TCP senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelRules {
    /// The assumptions of the papers, as far as they are published: `sa-tcp` for meters and
    /// aggregators, `plc` for bulk flows. Errors of the printed equations are corrected.
    Paper,
    /// As [`Self::Paper`], with the queues of paper `sa-tcp` as printed: B packets in the system
    /// instead of B that wait (equation 5), and the time in the system instead of the waiting time
    /// where Vegas estimates its queue (equations 2, 11 and 12).
    Printed,
    /// The behaviour of TCP implementations (RFC 5681, RFC 6298).
    #[default]
    Refined,
}

impl ModelRules {
    /// Whether the chains are those of the papers.
    #[must_use]
    pub const fn are_of_a_paper(self) -> bool {
        matches!(self, Self::Paper | Self::Printed)
    }
}
