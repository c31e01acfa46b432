//! Inconsistent values of a measurement. Without these checks, a run would measure something else
//! than was requested, or nothing.

mod agent;
mod experiment;
mod protocol;

use std::fmt;
use std::ops::RangeInclusive;

use gridhaul_scenario::scenario::Diagnostic;

use super::{Measurement, NetworkSource, Place, limits};
use crate::systems;

/// Inconsistent values with their keys.
struct Findings(Vec<Diagnostic>);

impl Findings {
    fn add(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Diagnostic::new(key, message, remedy));
    }

    fn range(&mut self, key: impl Into<String>, checked: Result<(), String>) {
        if let Err(expected) = checked {
            self.add(key, expected, "");
        }
    }

    fn within<T: PartialOrd + fmt::Display + Copy>(
        &mut self,
        key: impl Into<String>,
        value: T,
        range: &RangeInclusive<T>,
    ) {
        if !range.contains(&value) {
            let (start, end) = (range.start(), range.end());
            let message = format!("expected a number from {start} to {end}, found {value}");
            self.add(key, message, "");
        }
    }
}

impl Measurement {
    /// Inconsistent values.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = Findings(Vec::new());
        check_message(self, &mut found);
        experiment::check(self, &mut found);
        protocol::check(self, &mut found);
        match &self.place {
            Place::ThisMachine => {}
            Place::Emulated(network) => {
                if let NetworkSource::System(name) = &network.network
                    && !systems::names().any(|known| known == name)
                {
                    let known: Vec<_> = systems::names().collect();
                    found.add(
                        "place.emulated.network.system",
                        format!("there is no system \"{name}\""),
                        format!("choose from: {}", known.join(", ")),
                    );
                }
                let keys = [
                    ("congestion_control", network.congestion_control.is_some()),
                    ("receive_window", network.receive_window.is_some()),
                ];
                for (key, _) in keys.iter().filter(|(_, is_set)| *is_set) {
                    if !self.protocol.is_stream() {
                        let message = format!("no effect with {}", self.protocol.name());
                        let key = format!("place.emulated.{key}");
                        found.add(key, message, "leave it out; it is a setting of TCP");
                    }
                }
            }
            Place::Agent(_) => agent::check(self, &mut found),
        }
        found.0
    }
}

fn check_message(measurement: &Measurement, found: &mut Findings) {
    let Measurement { message, protocol, generator, .. } = measurement;
    found.range("message.bytes", limits::message_bytes(message.bytes));
    found.range("message.horizon", limits::positive(message.horizon));
    if let Some(number) = generator.processor {
        found.range("generator.processor", limits::processor(number));
    }
    let (bytes, max) = (measurement.message_bytes(), protocol.longest_message());
    if bytes > max {
        let name = protocol.name();
        found.add(
            "message.bytes",
            format!("{name} carries at most {max} B in a message, and this one has {bytes} B"),
            "choose a shorter message",
        );
    }
}
