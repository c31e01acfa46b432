//! Damping of returns to a link that fails again and again.

use gridhaul_scenario::units::{Duration, Instant};

/// The time between two returns to a link: a return and the failure before it are two switches, so
/// that this is one switch a minute. It doubles whenever the link fails before it has passed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Damping {
    last_return: Option<Instant>,
    spacing: Duration,
}

const SPACING: Duration = Duration::from_secs(120);
const SPACING_MAX: Duration = Duration::from_secs(1_920);

impl Damping {
    pub(super) const fn new() -> Self {
        Self { last_return: None, spacing: SPACING }
    }

    /// The link has failed while it was usable.
    pub(super) fn fail(&mut self, now: Instant) {
        let Some(last_return) = self.last_return else { return };
        if now.since(last_return) < self.spacing {
            self.spacing = (self.spacing * 2).min(SPACING_MAX);
        } else {
            self.spacing = SPACING;
        }
    }

    /// The link is usable again.
    pub(super) const fn note_return(&mut self, now: Instant) {
        self.last_return = Some(now);
    }

    /// Before this time, the link does not become usable.
    pub(super) fn earliest_return(&self) -> Instant {
        self.last_return.map_or(Instant::ZERO, |at| at + self.spacing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spacing_doubles_for_a_link_that_fails_soon_after_each_return() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut damping = Damping::new();
        damping.fail(at(5));
        assert_eq!(damping.earliest_return(), at(0), "the first failure has no consequence");
        damping.note_return(at(20));
        damping.fail(at(30));
        assert_eq!(damping.earliest_return(), at(20 + 240));
        damping.note_return(at(300));
        damping.fail(at(310));
        assert_eq!(damping.earliest_return(), at(300 + 480));
        damping.note_return(at(1_000));
        damping.fail(at(2_000));
        assert_eq!(damping.earliest_return(), at(1_120), "the link was stable");
    }
}
