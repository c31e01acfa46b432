//! Why two answers to the same question may differ, where that is known.

use gridhaul_scenario::answer::{Answer, Metric};

/// The likely reason for which the row `name` has another value of this metric in the second answer.
/// What an answer itself says about the row comes first: that is what was assumed.
pub(super) fn likely(metric: Metric, name: &str, answers: [&Answer; 2]) -> Option<String> {
    let [first, other] = answers.map(|answer| answer.backend.as_str());
    if first == other {
        return None;
    }
    let mut said: Vec<String> = Vec::new();
    for answer in answers {
        for warning in answer.warnings.iter().filter(|warning| concerns(&warning.about, name)) {
            said.push(format!("{}: {}", answer.backend, warning.message));
        }
    }
    said.extend(by_definition(metric, [first, other]).map(str::to_owned));
    (!said.is_empty()).then(|| said.join("; "))
}

/// Whether a warning is about this flow or direction: `flow.up`, `link.wire.forward.loss`.
fn concerns(about: &str, name: &str) -> bool {
    let rest = about.strip_prefix("flow.").or_else(|| about.strip_prefix("link.")).unwrap_or(about);
    rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        || about == "emulator"
}

/// What backends measure differently, whatever the scenario.
fn by_definition(metric: Metric, backends: [&str; 2]) -> Option<&'static str> {
    if !backends.contains(&"emu") {
        return None;
    }
    match metric {
        Metric::RttMean => Some(
            "emu looks at the kernel's smoothed round trip at regular times; the others average over \
             measurements",
        ),
        Metric::Retransmissions | Metric::RetransmissionRatio | Metric::Timeouts => Some(
            "kernels repair losses in their own way, which the profile `linux` follows as far as \
             docs/limitations/tcp.md says",
        ),
        Metric::DelayMax => Some("the real clock adds what this machine was late"),
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
        assert!(concerns("emulator", "up"), "what touches the whole run");
    }
}
