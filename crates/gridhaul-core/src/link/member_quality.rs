//! The quality of the link of a member, drawn from the distribution of its group.

use gridhaul_scenario::scenario::{Direction, LinkQuality, Loss};

use super::LinkRandomStreams;

/// The keys of the direction of a member: those of its group, with the values of its ranks. `own`
/// are the random streams of the direction, `link` those of both directions together.
pub(super) fn keys_of_member(
    keys: &Direction,
    quality: &LinkQuality,
    own: LinkRandomStreams,
    link: LinkRandomStreams,
) -> Direction {
    // Each quantity has a stream of its own, so that none changes the ranks of the others.
    let rank = |purpose: &str| match quality.common_rank {
        true => link.stream("quality").standard_uniform(),
        false => own.stream(purpose).standard_uniform(),
    };
    let rate = quality.rate_at(rank("quality: rate")).unwrap_or(keys.rate);
    let loss = quality.loss_at(rank("quality: loss")).map(Loss::Bernoulli);
    let loss = loss.or_else(|| keys.loss.clone());
    let delay = keys.delay + quality.delay_at(rank("quality: delay")).unwrap_or_default();
    Direction { rate, loss, delay, ..keys.clone() }
}
