//! Checks of the distribution of quality over the members of a group.

use super::Report;
use crate::scenario::{Direction, Link};

impl Report<'_> {
    pub(super) fn link_quality(&mut self, key: &str, link: &Link, direction: &Direction) {
        let Some(quality) = &direction.quality else { return };
        let key = format!("{key}.quality");
        let lists = [
            ("rate", quality.rate.len()),
            ("loss", quality.loss.len()),
            ("delay", quality.delay.len()),
        ];
        if lists.iter().all(|(_, length)| *length == 0) {
            self.refuse(
                &key,
                "the quality has no quantiles",
                "write rate = [\"20 kbit/s\", \"60 kbit/s\"], or remove `quality`",
            );
        }
        for (name, _) in lists.into_iter().filter(|(_, length)| *length == 1) {
            self.refuse(
                format!("{key}.{name}"),
                "a distribution needs at least two quantiles: minimum and maximum",
                format!("write a second value, or the key `{name}` of the direction"),
            );
        }
        if let Some(index) = quality.rate.iter().position(|rate| rate.as_bits_per_sec() == 0) {
            self.refuse(
                format!("{key}.rate[{index}]"),
                "a direction needs a rate above 0",
                "write the smallest rate of a member that is connected",
            );
        }
        let has_rate = direction.rate.as_bits_per_sec() > 0
            || direction.trace.is_some()
            || !direction.rate_change.is_empty();
        if !quality.rate.is_empty() && has_rate {
            self.refuse(
                format!("{key}.rate"),
                "the direction has another rate: `rate`, `rate_change`, `trace` or `power_line`",
                "remove it, or the quantiles of the rate",
            );
        }
        if !quality.loss.is_empty() && direction.loss.is_some() {
            self.refuse(
                format!("{key}.loss"),
                "the direction has both `loss` and quantiles of the loss",
                "remove one of both",
            );
        }
        if link.shared {
            self.refuse(
                key,
                "the members of a shared link have the same quality",
                "remove `shared`, or `quality`",
            );
        }
    }
}
