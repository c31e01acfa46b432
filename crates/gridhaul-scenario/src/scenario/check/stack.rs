//! Checks of TCP stacks.

use super::Report;
use crate::scenario::{CongestionControlAlgorithm, PACKET_MAX, Profile, Stack};
use crate::units::{Bytes, WindowSize};

/// IP and TCP headers without options: the largest packet minus these headers is the largest MSS.
const HEADERS: u64 = 40;

/// Largest number of segments for each acknowledgement, which a receiver counts in a byte.
const ACK_EVERY_MAX: u32 = 255;

/// The largest window that TCP can express: 16 bits, shifted by 14 (RFC 7323, section 2.3).
const WINDOW_MAX: u64 = 65_535 << 14;

/// MSS of the profiles, if a stack has none.
const USUAL_MSS: u32 = 1_460;

impl Report<'_> {
    pub(super) fn stacks(&mut self) {
        for (name, stack) in &self.scenario.stack {
            let key = format!("stack.{name}");
            self.segments(&key, stack);
            self.windows(&key, stack);
            self.counts_and_timers(&key, stack);
            self.vegas(&key, stack);
            self.medx(&key, stack);
        }
    }

    fn segments(&mut self, key: &str, stack: &Stack) {
        let largest = PACKET_MAX.get() - HEADERS;
        let header = stack.header.unwrap_or(Bytes::new(HEADERS));
        if header > Stack::HEADER_MAX {
            self.refuse(
                format!("{key}.header"),
                format!(
                    "the headers must be at most {}, not {header}: with options of up to {}, they \
                     may have 255 B",
                    Stack::HEADER_MAX,
                    Stack::OPTIONS_MAX
                ),
                "the usual header is \"40 B\"",
            );
        }
        if let Some(mss) = stack.mss
            && !(1..=largest).contains(&mss.get())
        {
            self.refuse(
                format!("{key}.mss"),
                format!("the MSS must be from 1 to {largest} bytes, not {mss}"),
                "write \"1460 B\", or leave it out",
            );
        } else if header <= Stack::HEADER_MAX
            && stack.mss.is_some_and(|mss| mss.get() + header.get() > PACKET_MAX.get())
        {
            self.refuse(
                format!("{key}.header"),
                format!("with its headers, a segment is larger than {} bytes", PACKET_MAX.get()),
                "the usual header is \"40 B\"",
            );
        }
    }

    fn windows(&mut self, key: &str, stack: &Stack) {
        let windows = [
            ("receive_window", stack.receive_window),
            ("initial_window", stack.initial_window),
            ("fixed_window", stack.fixed_window),
        ];
        for (window, size) in windows {
            let empty = size.is_some_and(|size| match size {
                WindowSize::Segments(segments) => segments == 0,
                WindowSize::Bytes(bytes) => bytes.get() == 0,
            });
            if empty {
                self.refuse(
                    format!("{key}.{window}"),
                    "the window must be above 0",
                    "write \"10 segments\" or \"64 kB\"",
                );
            }
            let mss = stack.mss.map_or(USUAL_MSS, |mss| u32::try_from(mss.get()).unwrap_or(1));
            if size.is_some_and(|size| size.in_bytes(mss) > WINDOW_MAX) {
                self.refuse(
                    format!("{key}.{window}"),
                    format!("the window must be at most {WINDOW_MAX} bytes, the largest of TCP"),
                    "write \"1 GB\" or less (RFC 7323, section 2.3)",
                );
            }
        }
        if stack.fixed_window.is_some()
            && stack.congestion_control != Some(CongestionControlAlgorithm::Fixed)
        {
            self.refuse(
                format!("{key}.fixed_window"),
                "only the congestion control `fixed` has a fixed window",
                "write congestion_control = \"fixed\", or remove the window",
            );
        }
    }

    fn counts_and_timers(&mut self, key: &str, stack: &Stack) {
        let counts = [("dupthresh", stack.dupthresh, 3), ("ack_every", stack.ack_every, 2)];
        for (name, count, usual) in counts {
            if count == Some(0) {
                self.refuse(
                    format!("{key}.{name}"),
                    "this must be at least 1",
                    format!("the usual value is {usual}"),
                );
            }
        }
        if stack.ack_every.is_some_and(|count| count > ACK_EVERY_MAX) {
            self.refuse(
                format!("{key}.ack_every"),
                format!("this must be at most {ACK_EVERY_MAX}"),
                "the usual value is 2",
            );
        }
        for (name, time) in [("rto_initial", stack.rto_initial), ("rto_max", stack.rto_max)] {
            if time.is_some_and(|time| time.is_zero()) {
                self.refuse(
                    format!("{key}.{name}"),
                    "the timeout must be above 0",
                    "write \"1 s\", or leave it out",
                );
            }
        }
        if stack.clock_phase.is_some() && stack.profile != Profile::Ns2 {
            self.refuse(
                format!("{key}.clock_phase"),
                "only the profile `ns2` has a clock with a phase",
                "write profile = \"ns2\", or remove the phase",
            );
        }
        if let (Some(minimum), Some(largest)) = (stack.rto_min, stack.rto_max)
            && minimum > largest
        {
            self.refuse(
                format!("{key}.rto_min"),
                format!("the smallest timeout ({minimum}) is above the largest ({largest})"),
                "swap them, or leave out one",
            );
        }
    }

    fn vegas(&mut self, key: &str, stack: &Stack) {
        let numbers = [
            ("vegas_alpha", stack.vegas_alpha),
            ("vegas_beta", stack.vegas_beta),
            ("vegas_gamma", stack.vegas_gamma),
        ];
        for (name, number) in numbers {
            if let Some(number) = number
                && !(number.is_finite() && number >= 0.0)
            {
                self.refuse(
                    format!("{key}.{name}"),
                    format!(
                        "expected a number of segments that is finite and not negative, found \
                         {number}"
                    ),
                    "the usual values are alpha 1, beta 3, gamma 1",
                );
            }
        }
        // Values that are not given come from the profile and are checked as well.
        let usual = stack.profile.vegas();
        let alpha = stack.vegas_alpha.unwrap_or(usual.0);
        let beta = stack.vegas_beta.unwrap_or(usual.1);
        let key = match stack.vegas_alpha {
            Some(_) => format!("{key}.vegas_alpha"),
            None => format!("{key}.vegas_beta"),
        };
        if alpha > beta {
            let remedy = match (stack.vegas_alpha, stack.vegas_beta) {
                (Some(_), Some(_)) => {
                    "Vegas keeps from alpha to beta segments in the queue: swap them"
                }
                (Some(_), None) => "this beta comes from the profile: set `vegas_beta` as well",
                _ => "this alpha comes from the profile: set `vegas_alpha` as well",
            };
            self.refuse(key, format!("alpha ({alpha}) is above beta ({beta})"), remedy);
        } else if alpha == 0.0 {
            self.refuse(
                key,
                "with alpha 0 the window never grows after slow start, since no queue is shorter \
                 than 0",
                "the usual values are alpha 1, beta 3, gamma 1; alpha and beta may be the same",
            );
        }
    }

    fn medx(&mut self, key: &str, stack: &Stack) {
        if let Some(alpha) = stack.medx_alpha
            && !(0.0..1.0).contains(&alpha)
        {
            self.refuse(
                format!("{key}.medx_alpha"),
                format!("the weight of the past must be at least 0 and below 1, not {alpha}"),
                "the usual value is 0.5",
            );
        }
        if let Some(beta) = stack.medx_beta
            && !(beta.is_finite() && beta > 0.0)
        {
            self.refuse(
                format!("{key}.medx_beta"),
                format!("the multiple of the average delay must be finite and above 0, not {beta}"),
                "the usual value is 1.2",
            );
        }
        if let Some(kept) = stack.medx_buffer
            && !(2..=1000).contains(&kept)
        {
            self.refuse(
                format!("{key}.medx_buffer"),
                format!("the number of delays must be from 2 to 1000, not {kept}"),
                "the usual value is 4",
            );
        }
        if stack.congestion_control == Some(CongestionControlAlgorithm::Medx) {
            self.medx_receiver(key, stack);
        }
    }

    /// Paper `medx`, section 2: every segment is acknowledged at once, with its delay.
    fn medx_receiver(&mut self, key: &str, stack: &Stack) {
        if stack.delayed_ack.is_some_and(|delay| !delay.is_zero()) {
            self.refuse(
                format!("{key}.delayed_ack"),
                "with `medx` the receiver acknowledges every segment at once",
                "write \"0 s\", or remove it",
            );
        }
        if stack.ecn == Some(true) {
            self.refuse(
                format!("{key}.ecn"),
                "`medx` has no reaction to congestion marks in packets",
                "remove it; `medx_classifier = \"ecn\"` is the control of the paper",
            );
        }
        if stack.timestamps == Some(true) {
            self.refuse(
                format!("{key}.timestamps"),
                "`medx` uses its own option instead of timestamps",
                "write false, or remove it",
            );
        }
    }
}
