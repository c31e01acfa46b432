//! Checks of exchanges and of polling profiles.

use super::Report;
use crate::scenario::{ConnectionPolicy, Exchange, Flow, FlowEnd, Iec104, Load, Modbus};
use crate::units::Duration;

/// Largest number of steps of an exchange: each member has a copy of them.
const STEPS_MAX: usize = 1_000;

impl Report<'_> {
    pub(super) fn exchange(&mut self, key: &str, load: &Exchange) {
        if load.steps.is_empty() || load.steps.len() > STEPS_MAX {
            self.refuse(
                format!("{key}.steps"),
                format!("an exchange has 1 to {STEPS_MAX} steps, not {}", load.steps.len()),
                "write [{ writer = \"from\", size = \"20 B\" }, { writer = \"to\", size = \
                 \"200 B\" }]",
            );
        }
        for (index, step) in load.steps.iter().enumerate() {
            self.some_size(&format!("{key}.steps[{index}].size"), step.size);
        }
        if let Some(first) = load.steps.first() {
            if first.writer == FlowEnd::To {
                self.refuse(
                    format!("{key}.steps[0].writer"),
                    "the `from` end begins an exchange",
                    "exchange `from` and `to` of the flow, and the writers of the steps",
                );
            }
            if !first.after.is_zero() {
                self.refuse(
                    format!("{key}.steps[0].after"),
                    "the first step has no previous one",
                    "remove this key; `every` or `pause` set the time between two exchanges",
                );
            }
        }
        if let Some(every) = load.every {
            self.some_time(&format!("{key}.every"), every);
            if !load.pause.is_zero() {
                self.refuse(
                    format!("{key}.pause"),
                    "`every` already sets the times of the exchanges",
                    "remove `every` or `pause`",
                );
            }
        }
    }

    pub(super) fn modbus(&mut self, key: &str, load: &Modbus) {
        if !(1..=Modbus::REGISTERS_MAX).contains(&load.registers) {
            self.refuse(
                format!("{key}.registers"),
                format!("a request reads 1 to {} registers", Modbus::REGISTERS_MAX),
                "write a number in this range; for more registers, use `exchange` with several \
                 requests",
            );
        }
        self.some_time(&format!("{key}.every"), load.every);
    }

    pub(super) fn iec_104(&mut self, key: &str, load: &Iec104) {
        if !(1..=Iec104::VALUES_MAX).contains(&load.values) {
            self.refuse(
                format!("{key}.values"),
                format!("a frame has 1 to {} values with time tag", Iec104::VALUES_MAX),
                "write a number in this range, and send more frames with a shorter `every`",
            );
        }
        for (name, time) in [("every", load.every), ("t2", load.t2), ("t3", load.t3)] {
            self.some_time(&format!("{key}.{name}"), time);
        }
        if let Some(t1) = load.t1 {
            self.iec_104_timers(key, t1, load);
        }
        if !(1..=Iec104::WINDOW_MAX).contains(&load.k) {
            self.refuse(
                format!("{key}.k"),
                format!("frame numbers permit 1 to {} frames", Iec104::WINDOW_MAX),
                "write 12, the default of the standard",
            );
        }
        if !(1..=load.k.max(1)).contains(&load.w) {
            self.refuse(
                format!("{key}.w"),
                "an acknowledgement is due after 1 to `k` frames; with more, the station would \
                 wait for timer t2",
                "write at most two thirds of `k`, as the standard recommends",
            );
        }
    }

    /// The relations of the timers that the standard demands (section 9.6).
    fn iec_104_timers(&mut self, key: &str, t1: Duration, load: &Iec104) {
        let Iec104 { t2, t3, .. } = *load;
        if t1 <= t2 {
            self.refuse(
                format!("{key}.t1"),
                format!(
                    "an acknowledgement is due after t2, {t2}: this time would end the connection \
                     before"
                ),
                "write t1 = \"15 s\" and t2 = \"10 s\", the defaults of the standard; t1 is longer \
                 than t2 and a round trip",
            );
        } else if t3 <= t1 {
            self.refuse(
                format!("{key}.t3"),
                format!(
                    "the standard tests a connection only when it was idle for longer than t1, {t1}"
                ),
                "write t1 = \"15 s\" and t3 = \"20 s\", the defaults of the standard",
            );
        }
    }

    /// Exchanges over connections that close between messages.
    pub(super) fn connection_of_exchange(&mut self, key: &str, flow: &Flow) {
        let load = flow.load.plain();
        let is_possible = match (&*load, flow.connection) {
            (Load::Exchange(load), ConnectionPolicy::PerMessage) => {
                load.alternates() && load.steps.len() == 2
            }
            (Load::Exchange(load), ConnectionPolicy::IdleTimeout(_)) => load.alternates(),
            (Load::Iec104(_), policy) => policy == ConnectionPolicy::Persistent,
            _ => true,
        };
        if !is_possible {
            self.refuse(
                format!("{key}.connection"),
                "a connection that closes would divide this exchange: `per_message` requires a \
                 request and its response, an idle timeout steps that alternate",
                "use connection = \"persistent\"",
            );
        }
    }
}
