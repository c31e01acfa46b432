//! Media that several transmitters share, and the rules of access to them.

mod csma_ca;
mod sharing;
mod tdma;

use serde::{Deserialize, Serialize};

pub use csma_ca::{ContentionStage, CsmaCa, CsmaCaParameters, CsmaStandard};
pub use sharing::SharedMedium;
pub use tdma::Tdma;

/// A medium that all links with its name in their key `medium` share: one transmitter at a time, in
/// either direction. Power lines and radio channels are such media.
///
/// All nodes hear each other, without delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// Carrier sense multiple access with collision avoidance: nodes with packets contend.
    CsmaCa(CsmaCa),
    /// Time division multiple access: each direction of a link has its own time slots.
    Tdma(Tdma),
}
