//! Checks of radio interfaces.

use super::Report;
use crate::scenario::{Direction, Link, Radio};
use crate::units::Duration;

impl Report<'_> {
    pub(super) fn radio(&mut self, key: &str, link: &Link, direction: &Direction) {
        let Some(radio) = &direction.radio else { return };
        let key = format!("{key}.radio");
        let keys = radio.parameters();
        if keys.slot < Radio::SLOT_MIN {
            self.refuse(
                format!("{key}.slot"),
                format!("the length of a slot must be at least {}", Radio::SLOT_MIN),
                "write \"1 ms\", or leave it out",
            );
        }
        if keys.round_trip < keys.slot {
            self.refuse(
                format!("{key}.round_trip"),
                format!("a block cannot be repeated before its slot of {} ends", keys.slot),
                "write \"8 ms\", or leave it out",
            );
        }
        if !(1..=Radio::TRANSMISSIONS_MAX).contains(&keys.transmissions) {
            self.refuse(
                format!("{key}.transmissions"),
                format!("expected a number from 1 to {}", Radio::TRANSMISSIONS_MAX),
                "write 1 for no repetitions, or leave it out",
            );
        }
        if radio.request_every.is_some_and(Duration::is_zero) {
            self.refuse(
                format!("{key}.request_every"),
                "the period of scheduling requests must be above 0",
                "write \"10 ms\", or leave it out for a downlink",
            );
        }
        if radio.grant_delay.is_some() && radio.request_every.is_none() {
            self.refuse(
                format!("{key}.grant_delay"),
                "there are no grants without scheduling requests",
                "add request_every = \"10 ms\", or remove `grant_delay`",
            );
        }
        let other = [
            (link.medium.is_some(), "medium"),
            (direction.trace.is_some(), "trace"),
            (direction.scheduler.is_some(), "scheduler"),
        ];
        for (_, name) in other.into_iter().filter(|(is_set, _)| *is_set) {
            self.refuse(
                &key,
                format!("a radio interface cannot be combined with `{name}`"),
                format!("remove `radio` or `{name}`"),
            );
        }
    }
}
