//! A comparison as text.

use std::fmt::Write;

use super::{Comparison, ConnectionComparison};
use crate::csv::csv_cell;
use crate::quantity::{bit_rate, bytes, seconds};

impl Comparison {
    /// The comparison as CSV (RFC 4180), with a line of names.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = "connection,client,server,sender,payload_byte,measured_bit_per_s,\
                        simulated_bit_per_s,difference,parting_s,behind,reason\r\n"
            .to_owned();
        let number = |number: Option<f64>| number.map_or(String::new(), |n| n.to_string());
        for row in &self.connections {
            let sender = if row.is_upload { "client" } else { "server" };
            let parting = row.parting.as_ref();
            let reason = parting.and_then(|parting| parting.reason.as_deref()).unwrap_or_default();
            let _ = write!(
                text,
                "{},{},{},{sender},{},{},{},{},{},{},{}\r\n",
                row.number,
                row.ends.client,
                row.ends.server,
                row.payload_byte,
                number(row.measured_bit_per_s),
                number(row.simulated_bit_per_s),
                number(row.difference),
                number(parting.map(|parting| parting.at_s)),
                parting.map_or("", |parting| parting.behind.name()),
                csv_cell(reason)
            );
        }
        text
    }
}

impl ConnectionComparison {
    /// Headings of [`cells`](Self::cells).
    pub const HEADINGS: [&'static str; 6] =
        ["connection", "data", "measured", "simulated", "difference", "part at"];

    /// The row of a table.
    #[must_use]
    pub fn cells(&self) -> [String; 6] {
        let unknown = || "–".to_owned();
        let rate = |rate: Option<f64>| rate.map_or_else(unknown, bit_rate);
        let difference = self.difference.map_or_else(unknown, |difference| {
            let per_cent = format!("{:+.1} %", 100.0 * difference);
            per_cent.replace('-', "−")
        });
        let parting = self.parting.as_ref();
        [
            self.number.to_string(),
            bytes(self.payload_byte as f64),
            rate(self.measured_bit_per_s),
            rate(self.simulated_bit_per_s),
            difference,
            parting.map_or_else(unknown, |parting| seconds(parting.at_s)),
        ]
    }

    /// Where the capture and the simulation part, and why, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let tolerance =
            format!("{} or {} late", bytes(self.tolerance_byte), seconds(self.tolerance_s));
        match &self.parting {
            None if self.simulated.is_none() => {
                format!("{}: the simulation has no data of this connection.", self.number)
            }
            None => format!(
                "{}: the acknowledged bytes never differ by more than {tolerance}.",
                self.number
            ),
            Some(parting) => {
                let behind = parting.behind.noun();
                let reason = parting
                    .reason
                    .as_ref()
                    .map_or("; the waits of the sender show no reason".to_owned(), |reason| {
                        format!(": {reason}")
                    });
                format!(
                    "{}: at {} {behind} is {} behind, more than {tolerance}{reason}.",
                    self.number,
                    seconds(parting.at_s),
                    bytes(parting.by_byte)
                )
            }
        }
    }
}
