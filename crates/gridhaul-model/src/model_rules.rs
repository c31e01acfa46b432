//! Two sets of rules for the same scenario.

/// Which rules are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelRules {
    /// Those of the papers, as far as their texts tell them: `sa-tcp` for meters and aggregators, `plc`
    /// for bulk flows.
    Paper,
    /// Those that a TCP follows.
    #[default]
    Refined,
}
