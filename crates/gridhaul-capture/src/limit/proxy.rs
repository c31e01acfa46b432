//! A proxy that splits the connection: its receive window is full because its connection on the
//! other side is slower.
//!
//! One side alone cannot show a proxy: a slow application at the receiver has the same packets. The
//! limit is therefore named only if both sides were captured: the same addresses and ports at two
//! points, with different sequence numbers (`connections.rs`).

use super::{Facts, Limit};
use crate::quantity::percent;

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let leg = facts.proxied_by;
    let other = leg.map_or_else(String::new, |leg| {
        let limit = leg.limit.map_or("nothing that the capture shows", Limit::noun);
        format!("connection {} (at {}), which {limit} limits", leg.number, leg.point)
    });
    format!(
        "the same connection has other sequence numbers at the other point: a proxy divides it. \
         Its receive window was full in {}, while it forwarded the data by {other}",
        percent(facts.shares.of(Limit::Proxy)),
    )
}
