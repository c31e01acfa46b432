//! Messages about single connections, at most one per second and cause: many connections may fail
//! in the same way.

use std::collections::BTreeMap;

use gridhaul_scenario::units::{Duration, Instant};

/// Reports faults with which the relay runs, although peers will refuse it.
pub(crate) fn report_faults(faults: &[String]) {
    for fault in faults {
        report(Level::Error, fault);
    }
}

/// Writes one line to the log of the daemon: standard error, which systemd stores with a time.
pub(crate) fn report(level: Level, message: &str) {
    let (priority, word) = match level {
        Level::Error => (3, "error: "),
        Level::Warning => (4, "warning: "),
        Level::Notice => (5, ""),
    };
    // The journal of systemd reads the priority from the start of a line (sd-daemon(3)).
    match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => eprintln!("<{priority}>{message}"),
        None => eprintln!("{word}{message}"),
    }
}

/// Importance of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warning,
    Notice,
}

/// Shortest time between two messages of a cause.
const INTERVAL: Duration = Duration::from_secs(1);

/// Times of the last messages, and how many were left out since.
#[derive(Debug, Default)]
pub(crate) struct LimitedReports(BTreeMap<&'static str, (Instant, u64)>);

impl LimitedReports {
    /// Writes a message, unless one of the same cause was written in the last second.
    pub(crate) fn report(&mut self, now: Instant, cause: &'static str, level: Level, text: &str) {
        if let Some(omitted) = self.admit(now, cause) {
            let rest = if omitted > 0 {
                format!(" ({omitted} similar messages were omitted)")
            } else {
                String::new()
            };
            report(level, &format!("{cause}: {text}{rest}"));
        }
    }

    /// How many messages were omitted before this one; `None` if this one is omitted.
    fn admit(&mut self, now: Instant, cause: &'static str) -> Option<u64> {
        let Some((next, omitted)) = self.0.get_mut(cause) else {
            self.0.insert(cause, (now + INTERVAL, 0));
            return Some(0);
        };
        if now < *next {
            *omitted += 1;
            return None;
        }
        *next = now + INTERVAL;
        Some(std::mem::take(omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_cause_are_limited() {
        let mut reports = LimitedReports::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(reports.admit(at(0), "handshake"), Some(0));
        assert_eq!(reports.admit(at(10), "handshake"), None);
        assert_eq!(reports.admit(at(20), "handshake"), None);
        assert_eq!(reports.admit(at(20), "framing"), Some(0), "another cause");
        assert_eq!(reports.admit(at(1_000), "handshake"), Some(2));
        assert_eq!(reports.admit(at(2_500), "handshake"), Some(0));
    }
}
