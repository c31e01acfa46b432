//! Known reasons for differences between two backends.

use gridhaul_scenario::answer::{Answer, Metric};

/// Likely reasons why the metric of row `name` differs between two answers: first the warnings of
/// the answers about this row, then differences in the definition of the metric.
pub(super) fn likely(metric: Metric, name: &str, answers: [&Answer; 2]) -> Option<String> {
    let [first, other] = answers.map(|answer| answer.backend.as_str());
    if first == other {
        return None;
    }
    let mut reasons: Vec<String> = Vec::new();
    for answer in answers {
        for warning in answer.warnings.iter().filter(|warning| concerns(&warning.about, name)) {
            reasons.push(format!("{}: {}", answer.backend, warning.message));
        }
    }
    reasons.extend(by_definition(metric, [first, other]).map(str::to_owned));
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Whether a warning is about this flow or direction: `flow.up`, `link.wire.forward.loss`.
fn concerns(about: &str, name: &str) -> bool {
    let rest = about.strip_prefix("flow.").or_else(|| about.strip_prefix("link.")).unwrap_or(about);
    rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        || about == "emulator"
}

/// Differences between backends in the definition of a metric.
fn by_definition(metric: Metric, backends: [&str; 2]) -> Option<&'static str> {
    if !backends.contains(&"emu") {
        return None;
    }
    match metric {
        Metric::RttMean => Some(
            "emu samples the kernel's smoothed round-trip time at regular intervals; the others \
             average all measurements",
        ),
        Metric::Retransmissions | Metric::RetransmissionRatio | Metric::Timeouts => Some(
            "the loss recovery of the kernel differs from profile `linux` as described in \
             docs/limitations/tcp.md",
        ),
        Metric::DelayMax => Some("the real clock adds scheduling delays of this machine"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_concerns_its_row_and_no_other() {
        assert!(concerns("flow.up", "up"));
        assert!(concerns("flow.up.load", "up"));
        assert!(!concerns("flow.upper", "up"));
        assert!(concerns("link.wire.forward.loss", "wire.forward"));
        assert!(!concerns("link.wire.reverse.loss", "wire.forward"));
        assert!(concerns("emulator", "up"), "the whole run");
    }
}
