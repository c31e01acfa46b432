//! Checks of the keys of traces of links. The files are not read here.

use super::Report;
use crate::scenario::{Direction, Link, LinkTrace, OutageMode};

impl Report<'_> {
    pub(super) fn link_trace(&mut self, key: &str, link: &Link, direction: &Direction) {
        let Some(trace) = &direction.trace else { return };
        if direction.rate.as_bits_per_sec() > 0 {
            let remedy = match link.power_line {
                Some(_) => "remove `power_line` or `trace`",
                None => "remove `rate` or `trace`",
            };
            let message = "the direction has both a rate and a trace, which gives the rate";
            self.refuse(format!("{key}.trace"), message, remedy);
        }
        if !direction.rate_change.is_empty() {
            self.refuse(
                format!("{key}.rate_change"),
                "the direction has both a trace and `rate_change`",
                "write the changes in the trace, or remove one of both",
            );
        }
        if trace.file().trim().is_empty() {
            self.refuse(
                format!("{key}.trace.{}", trace.file_key()),
                "the trace has no file",
                "name a file, for example \"lte.mahi\"",
            );
        }
        if let Some(medium) = &link.medium {
            self.refuse(
                format!("{key}.trace"),
                format!("a link with a trace cannot share the medium `{medium}`"),
                "remove `medium`, or use `rate` with `rate_change`",
            );
        }
        for (index, outage) in direction.outage.iter().enumerate() {
            if outage.mode == OutageMode::Hold {
                self.refuse(
                    format!("{key}.outage[{index}]"),
                    "a direction with a trace cannot have outages of mode \"hold\"",
                    "remove the lines of this time from the trace (in CSV: write a rate of 0), or \
                     use mode = \"drop\"",
                );
            }
        }
        if let LinkTrace::Steps(steps) = trace
            && steps.every.is_some_and(|every| every.is_zero())
        {
            self.refuse(
                format!("{key}.trace.steps.every"),
                "the period of a trace must be above 0",
                "write \"10 min\", or leave it out if the trace does not recur",
            );
        }
    }
}
