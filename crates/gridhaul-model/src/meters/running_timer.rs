//! Retransmission timers of ns-2's Vegas that run on while a meter is silent.
//!
//! The chain takes the silences as exponential, so that the timer ends during the round trip of
//! some messages, which are then transmitted twice. Periodic messages have a fixed phase to the
//! timer: they are all transmitted twice, or none is.

use super::layout::{FlowEntry, MessageInterval};
use crate::chain::meter::Restart;
use crate::fixed_point::{DataSource, Network, Stream};
use crate::model_rules::ModelRules;

/// Share of retransmissions beyond the losses from which a warning is given.
const SPURIOUS_MIN: f64 = 0.01;

/// The warning about periodic messages, if the chain retransmits some that are not lost.
pub(super) fn warning(network: &Network, place: &FlowEntry, stream: &Stream) -> Option<String> {
    let DataSource::Meter { tcp, .. } = &network.classes[place.class].source else { return None };
    let is_periodic = place.message_interval == MessageInterval::Fixed;
    if network.rules != ModelRules::Refined || !is_periodic || tcp.restart != Restart::TimerRunsOn {
        return None;
    }
    let rates = stream.sent.rates;
    let retransmitted = 1.0 - rates.fresh / rates.offered.max(f64::MIN_POSITIVE);
    (retransmitted - stream.loss > SPURIOUS_MIN).then(|| {
        "the timer of Vegas in profile `ns2` runs on during silences, which the equations take as \
         random: of periodic messages, either all are retransmitted although they are not lost, or \
         none is, and the retransmissions and the load are too low or too high; set \
         `restart_after_idle` to false, or use backend `sim`"
            .to_owned()
    })
}
