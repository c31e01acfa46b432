//! Checks of shared media.

use super::Report;
use crate::scenario::{CsmaCa, Direction, Medium, OutageMode, Tdma, suggest};
use crate::units::{Bytes, QueueLimit};

/// Largest number of stages of a contention.
const STAGES_MAX: usize = 100;

impl Report<'_> {
    pub(super) fn media(&mut self) {
        for (name, medium) in &self.scenario.medium {
            let key = format!("medium.{name}");
            match medium {
                Medium::CsmaCa(keys) => self.csma_ca(&format!("{key}.csma_ca"), keys),
                Medium::Tdma(keys) => self.tdma(&format!("{key}.tdma"), name, keys),
            }
        }
    }

    /// Checks that the medium of a link exists and can carry its directions.
    pub(super) fn medium_of_link(&mut self, link: &str, medium: &str) {
        let scenario = self.scenario;
        match scenario.medium.get(medium) {
            None => {
                self.unknown(&format!("link.{link}.medium"), "medium", medium, &scenario.medium);
            }
            Some(Medium::Tdma(_)) => {}
            Some(Medium::CsmaCa(_)) => {
                for (side, direction) in scenario.link[link].given() {
                    self.contending(&format!("link.{link}.{side}"), direction);
                }
            }
        }
    }

    /// Keys that contradict a random time of access.
    fn contending(&mut self, key: &str, direction: &Direction) {
        if direction.aqm.is_some() {
            self.refuse(
                format!("{key}.aqm"),
                "the queue of a modem with CSMA/CA is drop-tail",
                "remove `aqm`, or use a medium with `tdma`",
            );
        }
        if direction.scheduler.is_some() {
            self.refuse(
                format!("{key}.scheduler"),
                "a modem with CSMA/CA has one queue",
                "remove `scheduler`, or use a medium with `tdma`",
            );
        }
        let holds = direction.outage.iter().position(|outage| outage.mode == OutageMode::Hold);
        if let Some(index) = holds {
            self.refuse(
                format!("{key}.outage[{index}].mode"),
                "an outage of a medium with CSMA/CA cannot stop a transmission",
                "write mode = \"drop\", or use a medium with `tdma`",
            );
        }
        if matches!(direction.queue, QueueLimit::Packets(0))
            || direction.queue == QueueLimit::Bytes(Bytes::new(0))
        {
            self.refuse(
                format!("{key}.queue"),
                "a packet waits in the queue while it contends for the medium",
                "write \"10 packets\", or leave it out",
            );
        }
    }

    fn csma_ca(&mut self, key: &str, keys: &CsmaCa) {
        if keys.slot.is_some_and(|slot| slot.is_zero()) {
            self.refuse(
                format!("{key}.slot"),
                "the length of a slot must be above 0",
                "write \"35.84 us\", or leave it out",
            );
        }
        let windows = keys.windows.as_deref().unwrap_or_default();
        if keys.windows.is_some() && !(1..=STAGES_MAX).contains(&windows.len()) {
            self.refuse(
                format!("{key}.windows"),
                format!("expected from 1 to {STAGES_MAX} contention windows"),
                "write [8, 16, 32, 64], or leave it out",
            );
        }
        let valid = 1..=CsmaCa::WINDOW_MAX;
        if let Some(index) = windows.iter().position(|window| !valid.contains(window)) {
            self.refuse(
                format!("{key}.windows[{index}]"),
                format!("a contention window has from 1 to {} slots", CsmaCa::WINDOW_MAX),
                "write a number such as 16",
            );
        }
        let [windows, deferral] = keys.stage_counts();
        if windows != deferral {
            let given = if keys.deferral.is_some() { "deferral" } else { "windows" };
            self.refuse(
                format!("{key}.{given}"),
                format!("there are {windows} contention windows and {deferral} deferral counters"),
                "give `windows` and `deferral` for the same stages",
            );
        }
        if keys.attempts == Some(0) {
            self.refuse(
                format!("{key}.attempts"),
                "a packet is transmitted at least once",
                "write 1 for a packet that is lost in its first collision",
            );
        }
    }

    fn tdma(&mut self, key: &str, name: &str, keys: &Tdma) {
        if keys.slot.is_zero() {
            self.refuse(
                format!("{key}.slot"),
                "the length of a slot must be above 0",
                "write \"10 ms\"",
            );
        } else if keys.guard >= keys.slot {
            self.refuse(
                format!("{key}.guard"),
                format!("the guard time leaves no time of a slot ({})", keys.slot),
                "make it shorter than `slot`",
            );
        }
        let directions: Vec<String> =
            self.scenario.directions_on(name).map(|sender| sender.direction).collect();
        let unknown = keys.order.iter().position(|direction| !directions.contains(direction));
        if let Some(index) = unknown {
            let known: Vec<_> = directions.iter().map(String::as_str).collect();
            let direction = &keys.order[index];
            self.refuse(
                format!("{key}.order[{index}]"),
                format!("{direction:?} is not a direction of a link on this medium"),
                suggest::remedy(direction, &known),
            );
        } else if let Some(missing) =
            directions.iter().find(|direction| !keys.order.contains(direction))
            && !keys.order.is_empty()
        {
            self.refuse(
                format!("{key}.order"),
                format!("{missing} has no slot, so that its packets would never be sent"),
                "add the direction, or leave out `order`",
            );
        }
    }
}
