//! Counters that congestion controls report.

/// Counters of a congestion control's estimates about the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EstimatorCounters {
    /// Acknowledgements that updated an estimate. `None`: all that measured a round trip.
    pub updates: Option<u32>,
    /// Comparisons of an estimate with a threshold for a decision.
    pub evaluations: u32,
    /// Classifications of losses, if the algorithm distinguishes their causes.
    pub loss_classifications: Option<LossClassifications>,
}

/// Losses by the cause that the congestion control inferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossClassifications {
    /// Losses classified as congestion.
    pub congestion: u32,
    /// Losses classified as transmission errors.
    pub error: u32,
}
