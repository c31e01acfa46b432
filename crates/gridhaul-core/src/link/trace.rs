//! Directions that follow a trace.

use gridhaul_scenario::scenario::{Direction, LinkTraceContent};

use super::impaired_path::ImpairedPath;
use super::medium::MediumAccess;
use super::variable_quality::VariableQuality;
use super::variable_rate::VariableRate;
use super::{LinkDirection, LinkPayload, LinkRandomStreams};

impl<P: LinkPayload> LinkDirection<P> {
    /// Makes the direction follow its trace. `keys` and `random` are those with which the direction
    /// was built; no packet has been offered yet.
    pub(super) fn follow(
        &mut self,
        trace: &LinkTraceContent,
        keys: &Direction,
        random: LinkRandomStreams,
    ) {
        let plain = || Box::new(ImpairedPath::of(keys, &MediumAccess::Own, random));
        let impaired = self.impaired.get_or_insert_with(plain);
        impaired.rate = Some(VariableRate::of_trace(trace));
        impaired.quality = VariableQuality::of_trace(trace, random).map(Box::new);
    }
}
