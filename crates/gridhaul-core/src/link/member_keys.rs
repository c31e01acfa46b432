//! The keys of the link of a member: those of its group, with the quality and the handovers that
//! are drawn for the member.

use gridhaul_scenario::scenario::{Direction, Handover, LinkQuality, Loss};

use super::LinkRandomStreams;

/// The random streams of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberStreams {
    /// Those of the direction.
    pub(super) own: LinkRandomStreams,
    /// Those of both directions together.
    pub(super) link: LinkRandomStreams,
}

/// The keys of the direction of a member, if they differ from those of its group.
pub(super) fn keys_of_member(
    keys: &Direction,
    handover: Option<&Handover>,
    random: MemberStreams,
) -> Option<Direction> {
    let drawn = keys.quality.as_ref().map(|quality| with_quality(keys, quality, random));
    let Some(handover) = handover else { return drawn };
    let mut keys = drawn.unwrap_or_else(|| keys.clone());
    let draw = |every| random.link.stream("handover").uniform(every);
    keys.outage.extend(handover.interruptions(draw));
    Some(keys)
}

/// The keys of a direction with the values of the ranks of the member.
fn with_quality(keys: &Direction, quality: &LinkQuality, random: MemberStreams) -> Direction {
    // Each quantity has a stream of its own, so that none changes the ranks of the others.
    let rank = |purpose: &str| match quality.common_rank {
        true => random.link.stream("quality").standard_uniform(),
        false => random.own.stream(purpose).standard_uniform(),
    };
    let rate = quality.rate_at(rank("quality: rate")).unwrap_or(keys.rate);
    let loss = quality.loss_at(rank("quality: loss")).map(Loss::Bernoulli);
    let loss = loss.or_else(|| keys.loss.clone());
    let delay = keys.delay + quality.delay_at(rank("quality: delay")).unwrap_or_default();
    Direction { rate, loss, delay, ..keys.clone() }
}
