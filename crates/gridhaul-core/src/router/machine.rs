//! The machine of a hybrid router: which link each class of packets uses.

use gridhaul_scenario::units::{Duration, Instant};

use super::direction::{Direction, Reports};
use super::link_state::LinkState;
use super::probe::{Probe, Report, link_number};
use super::reception::Reception;
use super::settings::{Limits, LinkSettings, Settings};

/// A change that the machine has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A link has another state.
    State {
        /// Number of the link.
        link: usize,
        /// The new state.
        state: LinkState,
    },
    /// A class uses another link.
    Selected {
        /// Number of the class.
        class: usize,
        /// Number of the link.
        link: usize,
    },
}

/// Counters of a [`Machine`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that are not probes of the peer on this link.
    pub refused_probes: u64,
    /// Changes of the link of a class.
    pub switches: u64,
    /// Links that were suspected: several probes in a row were missing while another link answered.
    pub suspicions: u64,
    /// Suspected links that have answered again before they had failed.
    pub refuted_suspicions: u64,
}

/// The machine of a hybrid router.
#[derive(Debug, Clone)]
pub struct Machine {
    session: u32,
    peer_session: Option<u32>,
    /// When the last probe of the peer has arrived.
    probed_at: Option<Instant>,
    /// Since this time the peer knows the session of this router.
    known_since: Option<Instant>,
    reported_at: Option<Instant>,
    links: Vec<Link>,
    classes: Vec<Class>,
    events: Vec<Event>,
    counters: Counters,
}

#[derive(Debug, Clone)]
struct Link {
    number: u16,
    direction: Direction,
    reception: Reception,
    /// Of large probes.
    large_reception: Reception,
    /// State of the last event.
    announced: LinkState,
}

#[derive(Debug, Clone)]
struct Class {
    links: Vec<usize>,
    selected: usize,
}

/// Time without a probe or a report of the peer after which it is not running.
const PEER_SILENCE: Duration = Duration::from_secs(10);

impl Machine {
    /// A machine without a peer; links with carrier are usable.
    #[must_use]
    pub fn new(now: Instant, settings: Settings) -> Self {
        let limits =
            Limits { detection_time: settings.detection_time, hold_time: settings.hold_time };
        let link = |link: &LinkSettings| {
            let direction = Direction::new(now, limits, link);
            Link {
                number: link_number(&link.name),
                announced: direction.state(),
                direction,
                reception: Reception::default(),
                large_reception: Reception::default(),
            }
        };
        let links: Vec<_> = settings.links.iter().map(link).collect();
        let class = |order: Vec<usize>| {
            let selected = best(&links, &order);
            Class { links: order, selected }
        };
        let classes = settings.classes.into_iter().map(class).collect();
        Self {
            session: settings.session,
            peer_session: None,
            probed_at: None,
            known_since: None,
            reported_at: None,
            links,
            classes,
            events: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// The device of a link has or has lost carrier.
    pub fn handle_carrier(&mut self, now: Instant, link: usize, has_carrier: bool) {
        let direction = &mut self.links[link].direction;
        if direction.has_carrier() == has_carrier {
            return;
        }
        direction.set_carrier(now, has_carrier);
        self.hasten_other_probes(now, link);
        self.update();
    }

    /// A probe has arrived over a link.
    pub fn handle_probe(&mut self, now: Instant, link: usize, probe: &Probe) {
        if probe.link != self.links[link].number || !self.accept_session(now, probe) {
            self.counters.refused_probes += 1;
            return;
        }
        let arrived_on = &mut self.links[link];
        let reception = match probe.padded_to {
            None => &mut arrived_on.reception,
            Some(_) => &mut arrived_on.large_reception,
        };
        reception.receive(now, probe.number, probe.interval);
        if probe.peer_session == self.session {
            self.reported_at = Some(now);
            let known = now.since(*self.known_since.get_or_insert(now));
            for link in &mut self.links {
                let report_of = |is_about_large| {
                    let is_of_link = |report: &&Report| {
                        (report.link, report.is_about_large) == (link.number, is_about_large)
                    };
                    probe.reports.iter().find(is_of_link)
                };
                let Some(small) = report_of(false) else {
                    link.direction.note_unknown_to_peer(now);
                    continue;
                };
                let was_suspected = link.direction.state() == LinkState::Suspected;
                let reports = Reports { small, large: report_of(true), known };
                link.direction.handle_reports(now, reports);
                let answers = matches!(link.direction.state(), LinkState::Holding(_));
                self.counters.refuted_suspicions += u64::from(was_suspected && answers);
            }
            self.suspect_links(now);
        }
        self.advance(now);
    }

    /// A datagram that is no probe has arrived.
    pub const fn note_refused(&mut self) {
        self.counters.refused_probes += 1;
    }

    /// Applies the passing of time.
    pub fn advance(&mut self, now: Instant) {
        let peer_is_known = self.peer_is_known(now);
        for link in &mut self.links {
            link.direction.advance(now, peer_is_known);
        }
        for index in 0..self.links.len() {
            if self.links[index].reception.take_notice(now) {
                self.hasten_other_probes(now, index);
            }
        }
        self.update();
    }

    /// The next probe that is due, with the number of its link.
    pub fn next_probe(&mut self, now: Instant) -> Option<(usize, Probe)> {
        let index = self.links.iter().position(|link| link.direction.probe_at() <= now)?;
        let reports = self.links.iter().flat_map(|link| link.reports(now)).collect();
        let link = &mut self.links[index];
        let new = link.direction.send_probe(now);
        let probe = Probe {
            session: self.session,
            peer_session: self.peer_session.unwrap_or(0),
            link: link.number,
            interval: link.direction.interval(),
            number: new.number,
            reports,
            padded_to: new.padded_to,
        };
        Some((index, probe))
    }

    /// When a probe is due, or a report of a silence.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let due = |link: &Link| link.direction.probe_at().min(link.reception.notice_at());
        self.links.iter().map(due).min().unwrap_or(Instant::NEVER)
    }

    /// Changes since the last call, in their order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The link of a class.
    #[must_use]
    pub fn selected(&self, class: usize) -> usize {
        self.classes[class].selected
    }

    /// State of a link in the direction to the peer.
    #[must_use]
    pub fn state(&self, link: usize) -> LinkState {
        self.links[link].direction.state()
    }

    /// Whether the device of a link has carrier.
    #[must_use]
    pub fn has_carrier(&self, link: usize) -> bool {
        self.links[link].direction.has_carrier()
    }

    /// The newest round-trip time of a link.
    #[must_use]
    pub fn round_trip(&self, link: usize) -> Option<Duration> {
        self.links[link].direction.round_trip()
    }

    /// Silence at the peer after which a link has failed.
    #[must_use]
    pub fn silence_limit(&self, link: usize) -> Duration {
        self.links[link].direction.silence_limit()
    }

    /// Whether the peer reports which probes arrive.
    #[must_use]
    pub fn peer_is_known(&self, now: Instant) -> bool {
        self.reported_at.is_some_and(|at| now.since(at) < PEER_SILENCE)
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether a probe is from the peer. A new session must know that of this router, unless the
    /// peer is not running: a session that was read from a late probe of a former run, or from a
    /// forged one, would otherwise exclude the peer for ever, whose session is not known then.
    fn accept_session(&mut self, now: Instant, probe: &Probe) -> bool {
        let is_running = self.probed_at.is_some_and(|at| now.since(at) < PEER_SILENCE);
        let is_known = self.peer_session == Some(probe.session);
        if !is_known && is_running && probe.peer_session != self.session {
            return false;
        }
        self.probed_at = Some(now);
        if is_known {
            return true;
        }
        self.peer_session = Some(probe.session);
        self.known_since = None;
        for link in &mut self.links {
            link.reception = Reception::default();
            link.large_reception = Reception::default();
            link.direction.reset_reports(now);
        }
        true
    }

    /// Suspects links on which several probes in a row are missing, while another link answers.
    fn suspect_links(&mut self, now: Instant) {
        for index in 0..self.links.len() {
            let mut others = self.links.iter().enumerate().filter(|(other, _)| *other != index);
            if others.any(|(_, other)| other.direction.answers())
                && self.links[index].direction.suspect(now)
            {
                self.counters.suspicions += 1;
            }
        }
    }

    /// Reports the state of a link over the other links at once.
    fn hasten_other_probes(&mut self, now: Instant, link: usize) {
        for (other, state) in self.links.iter_mut().enumerate() {
            if other != link {
                state.direction.hasten_probe(now);
            }
        }
    }

    /// Selects links, and records changes.
    fn update(&mut self) {
        for (index, link) in self.links.iter_mut().enumerate() {
            let state = link.direction.state();
            if link.announced != state {
                link.announced = state;
                self.events.push(Event::State { link: index, state });
            }
        }
        for (number, class) in self.classes.iter_mut().enumerate() {
            let selected = best(&self.links, &class.links);
            let state = |link: usize| self.links[link].direction.state();
            // Links that are held back fail often: their order is no reason for a switch.
            let is_held = |link| matches!(state(link), LinkState::Holding(_));
            if class.selected != selected && !(is_held(class.selected) && is_held(selected)) {
                class.selected = selected;
                self.counters.switches += 1;
                self.events.push(Event::Selected { class: number, link: selected });
            }
        }
    }
}

impl Link {
    /// Reports about the probes of the peer: about large ones if there are any.
    fn reports(&self, now: Instant) -> impl Iterator<Item = Report> {
        let report = |is_about_large, reception: &Reception| Report {
            link: self.number,
            is_about_large,
            has_carrier: self.direction.has_carrier(),
            last: reception.last(now),
            count: reception.count(),
        };
        let large = report(true, &self.large_reception);
        let has_large = large.last.is_some();
        std::iter::once(report(false, &self.reception)).chain(has_large.then_some(large))
    }
}

/// The first of the links that have the best state.
fn best(links: &[Link], order: &[usize]) -> usize {
    let rank = |link: &&usize| links[**link].direction.state().rank();
    order.iter().min_by_key(rank).copied().unwrap_or(0)
}
