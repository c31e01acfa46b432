//! Checks of handovers.

use super::Report;
use crate::scenario::Link;

impl Report<'_> {
    pub(super) fn handover(&mut self, key: &str, link: &Link) {
        let Some(handover) = &link.handover else { return };
        let key = format!("{key}.handover");
        if handover.every.is_some() != handover.at.is_empty() {
            self.refuse(
                &key,
                "expected either `every` or `at`",
                "write every = \"60 s\" for periodic handovers, or at = [\"5 s\", \"12 s\"]",
            );
        }
        if handover.interruption.is_zero() {
            self.refuse(
                format!("{key}.interruption"),
                "the interruption must be above 0",
                "write \"50 ms\", or remove `handover`",
            );
        }
        if let Some(every) = handover.every
            && every <= handover.interruption
        {
            self.refuse(
                format!("{key}.every"),
                format!("handovers recur every {every} but each lasts {}", handover.interruption),
                "`every` is the time from one handover to the next: make it longer",
            );
        }
        let has_trace = link.given().any(|(_, direction)| direction.trace.is_some());
        for (_, name) in
            [(link.medium.is_some(), "medium"), (has_trace, "trace")].iter().filter(|set| set.0)
        {
            self.refuse(
                &key,
                format!("handovers cannot be combined with `{name}`"),
                format!("remove `handover` or `{name}`"),
            );
        }
    }
}
