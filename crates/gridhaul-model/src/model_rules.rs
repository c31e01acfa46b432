//! Assumptions of the model: those of the papers, or those of TCP implementations.

/// The assumptions about TCP senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelRules {
    /// The assumptions of the papers, as far as they are published: `sa-tcp` for meters and
    /// aggregators, `plc` for bulk flows.
    Paper,
    /// The behaviour of TCP implementations (RFC 5681, RFC 6298).
    #[default]
    Refined,
}
