//! Judgement of a measurement: which applications' limits are met.
//!
//! Limits are data with their standard, edition and source. A limit is met if the upper confidence
//! bound of the chosen quantile does not exceed it; it is exceeded if the lower bound does. In
//! between, more messages are needed.

mod evidence;
mod judge;

use gridhaul_scenario::units::Duration;
use serde::Deserialize;

pub use judge::{Bounds, Evidence, Reason, Verdict, judge};

/// Application with a limit of its transfer time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationClass {
    /// Name of the class in the standard.
    pub name: String,
    /// The standard.
    pub standard: String,
    /// Its edition: limits differ between editions.
    pub edition: String,
    /// Purpose of the class.
    pub application: String,
    /// Longest time from application to application, in ms.
    limit_ms: u64,
    /// Share of the limit that the network may take; `None` if the standard states none. IEC
    /// 61850-10, section 7.2.1, leaves 40 % of the limit to each end.
    pub network_share: Option<f64>,
    /// Greatest share of messages that are lost, incorrect or late; `None` if the standard states
    /// none.
    pub unsuccessful: Option<f64>,
    /// Where the limit was read.
    pub source: String,
    /// Whether the limit was compared with the text of the standard.
    pub checked: bool,
}

/// The part of the path that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// From application to application.
    Applications,
    /// The network alone.
    Network,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Classes {
    class: Vec<ApplicationClass>,
}

impl ApplicationClass {
    /// All classes, by standard and limit.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let classes: Classes =
            toml::from_str(include_str!("classes.toml")).expect("a test reads the file");
        classes.class
    }

    /// The class of this name, without regard to upper and lower case; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|class| class.name.eq_ignore_ascii_case(name))
    }

    /// Limit of this part of the path; `None` if the standard states none for the network.
    #[must_use]
    pub fn limit(&self, path: Path) -> Option<Duration> {
        let limit = Duration::from_millis(self.limit_ms);
        match path {
            Path::Applications => Some(limit),
            Path::Network => self.network_share.map(|share| limit.mul_f64(share)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_are_complete() {
        let classes = ApplicationClass::all();
        for standard in ["IEC 61850-5", "IEEE 1646", "3GPP TS 22.104"] {
            assert!(classes.iter().any(|class| class.standard == standard), "{standard}");
        }
        for class in &classes {
            assert!(!class.source.is_empty() && !class.edition.is_empty(), "{}", class.name);
            assert!(class.limit_ms > 0, "{}", class.name);
            assert!(class.network_share.is_none_or(|share| share > 0.0 && share <= 1.0));
        }
    }

    #[test]
    fn the_network_has_a_fifth_of_a_transfer_time() {
        let classes = ApplicationClass::all();
        let class = classes.iter().find(|class| class.name == "TT6").unwrap();
        assert_eq!(class.limit(Path::Applications), Some(Duration::from_millis(3)));
        assert_eq!(class.limit(Path::Network), Some(Duration::from_micros(600)));
    }
}
