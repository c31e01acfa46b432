//! Checks of discontinuous reception.

use super::Report;
use crate::scenario::{Aqm, Direction, Link};

impl Report<'_> {
    pub(super) fn drx(&mut self, key: &str, link: &Link, direction: &Direction) {
        let Some(drx) = &direction.drx else { return };
        let key = format!("{key}.drx");
        if drx.cycle.is_zero() {
            self.refuse(
                format!("{key}.cycle"),
                "the cycle of a device must be above 0",
                "write \"20.48 s\", or remove `drx` for a device that always listens",
            );
        }
        if link.shared {
            self.refuse(
                &key,
                "the devices of a shared link would sleep and wake at the same time",
                "remove `shared`, so that each member has its own phase, or remove `drx`",
            );
        }
        let other = [
            (link.medium.is_some(), "medium"),
            (direction.trace.is_some(), "trace"),
            (direction.scheduler.is_some(), "scheduler"),
            (matches!(direction.aqm, Some(Aqm::Red(_) | Aqm::Pie(_))), "aqm"),
        ];
        for (_, name) in other.into_iter().filter(|(is_set, _)| *is_set) {
            self.refuse(
                &key,
                format!("discontinuous reception cannot be combined with `{name}`"),
                format!("remove `drx` or `{name}`; of `aqm`, codel and fq_codel are possible"),
            );
        }
    }
}
