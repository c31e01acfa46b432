//! When the members of a flow start their loads and open their connections.

use gridhaul_scenario::scenario::{Flow, Load};
use gridhaul_scenario::units::{Duration, Instant};

use super::Demand;
use crate::random::RandomStream;

/// When the members of a flow start their loads and open their connections (`start_spread`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartSchedule {
    start: Instant,
    rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Load and connection start at the same random time within this span after `start`.
    WithLoad(Duration),
    /// The load starts at `start`, and the connection opens with its first message.
    WithFirstMessage,
    /// The load starts at `start`, and the connection opens at a random time within this span,
    /// before the event.
    BeforeEvent(Duration),
}

/// The default span over which the starts of flows without a natural phase are spread: long
/// compared with a round-trip time, so that handshakes do not collide, and short compared with a
/// run.
pub const DEFAULT_START_SPREAD: Duration = Duration::from_secs(1);

impl StartSchedule {
    /// The schedule of a flow with this many `connections`.
    #[must_use]
    pub fn of(flow: &Flow, connections: u64) -> Self {
        let start = Instant::ZERO + flow.start;
        let rule = match flow.start_spread {
            Some(spread) => Rule::WithLoad(spread),
            None => default_rule(&flow.load, connections),
        };
        Self { start, rule }
    }

    /// When the load of a member starts. `random` is the member's stream for its start.
    #[must_use]
    pub fn load_begins(&self, random: &mut RandomStream) -> Instant {
        match self.rule {
            Rule::WithLoad(spread) => self.start + random.uniform(spread),
            Rule::WithFirstMessage | Rule::BeforeEvent(_) => self.start,
        }
    }

    /// When a member opens its connection, with the load `demand` that starts at `load_begins`.
    /// [`Instant::NEVER`] if a recording determines the time, or if there is never a message.
    #[must_use]
    pub fn connection_opens(
        &self,
        load_begins: Instant,
        demand: &Demand,
        random: &mut RandomStream,
    ) -> Instant {
        match self.rule {
            Rule::WithLoad(_) => load_begins,
            Rule::BeforeEvent(span) => {
                load_begins + random.uniform(span.saturating_sub(Duration::from_nanos(1)))
            }
            Rule::WithFirstMessage => with_first_message(load_begins, demand, random),
        }
    }
}

fn default_rule(load: &Load, connections: u64) -> Rule {
    let spread = |span| Rule::WithLoad(if connections > 1 { span } else { Duration::ZERO });
    match &*load.plain() {
        Load::Bulk | Load::Transfer(_) => spread(DEFAULT_START_SPREAD),
        Load::RequestResponse(keys) => {
            let cycle = keys.think + keys.pause;
            spread(if cycle.is_zero() { DEFAULT_START_SPREAD } else { cycle })
        }
        Load::Exchange(keys) => {
            let cycle = keys.cycle();
            spread(if cycle.is_zero() { DEFAULT_START_SPREAD } else { cycle })
        }
        Load::Poisson(keys) if keys.synchronised => Rule::WithLoad(Duration::ZERO),
        Load::OnOff(keys) if keys.synchronised => Rule::WithLoad(Duration::ZERO),
        Load::Burst(keys) if !keys.at.is_zero() => Rule::BeforeEvent(keys.at),
        // A subscriber is ready before the first message.
        Load::MqttSubscription(_) => spread(Duration::ZERO),
        // Synchronised clocks tick together from `start` on, so their connections open together.
        Load::Periodic(_)
        | Load::Poisson(_)
        | Load::OnOff(_)
        | Load::Burst(_)
        | Load::Trace(_)
        | Load::External
        | Load::Iec104(_)
        | Load::Mqtt(_)
        | Load::Modbus(_)
        | Load::Dlms(_)
        | Load::Application(_) => Rule::WithFirstMessage,
    }
}

fn with_first_message(begins: Instant, demand: &Demand, random: &mut RandomStream) -> Instant {
    match demand {
        Demand::Open(source) => source.next_time(),
        // The on-off process is in its stationary state: on periods in progress at `begins` started
        // at different times before, so the members must not open their connections all at once.
        Demand::Greedy(greedy) if greedy.periods.active() => {
            let rest = greedy.periods.until().since(begins);
            begins + random.uniform(rest.min(DEFAULT_START_SPREAD))
        }
        Demand::Greedy(greedy) => greedy.periods.until(),
        Demand::Recorded => Instant::NEVER,
        Demand::Iec104(stations) => stations.first_ready(),
        Demand::Messages(session) => session.next_ready(),
        Demand::Endless | Demand::Limited(_) | Demand::Dialogue(_) | Demand::Exchange(_) => begins,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::scenario::Scenario;

    const MEMBERS: u64 = 2_000;

    /// Load start and connection opening of each member, in milliseconds after `start`.
    fn times(keys: &str, connections: u64) -> Vec<(f64, f64)> {
        let text = format!(
            "title = 't'\nduration = '1000 s'\n[node]\na = {{}}\nb = {{}}\n\
             [link.l]\nfrom = 'a'\nto = 'b'\nboth.rate = '1 Mbit/s'\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\nstart = '100 s'\n{keys}"
        );
        let scenario =
            Scenario::from_toml(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
        let flow = &scenario.flow["f"];
        let schedule = StartSchedule::of(flow, connections);
        let millis = |at: Instant| {
            if at == Instant::NEVER { f64::INFINITY } else { at.as_secs_f64() * 1e3 - 100e3 }
        };
        let member = |number| {
            let random = |purpose| RandomStream::named(1, 0, "meters", number, purpose);
            let mut start = random("start");
            let begins = schedule.load_begins(&mut start);
            let demand = Demand::new(&flow.load, begins, random("load"));
            (millis(begins), millis(schedule.connection_opens(begins, &demand, &mut start)))
        };
        (0..MEMBERS).map(member).collect()
    }

    /// Asserts that the connections open uniformly from 0 to `millis`: 200 of 2,000 in each tenth,
    /// with a standard deviation of 13.4.
    fn assert_even(openings: impl Iterator<Item = f64>, millis: f64) {
        let mut tenths = [0; 10];
        for opens in openings {
            assert!((0.0..=millis).contains(&opens), "{opens}");
            tenths[((opens / millis * 10.0) as usize).min(9)] += 1;
        }
        assert!(tenths.iter().all(|count| (140..260).contains(count)), "{tenths:?}");
    }

    fn openings(keys: &str) -> impl Iterator<Item = f64> {
        times(keys, MEMBERS).into_iter().map(|(_, opens)| opens)
    }

    #[test]
    fn an_explicit_spread_applies_to_load_and_connection() {
        for load in ["periodic = { size = '1 B', every = '10 s' }", "transfer.size = '1 kB'"] {
            let all = times(&format!("start_spread = '0 s'\nload.{load}"), MEMBERS);
            assert!(all.iter().all(|&at| at == (0.0, 0.0)), "{load}");
            let all = times(&format!("start_spread = '5 s'\nload.{load}"), MEMBERS);
            assert!(all.iter().all(|(begins, opens)| begins == opens), "{load}");
            assert_even(all.iter().map(|(_, opens)| *opens), 5e3);
        }
    }

    #[test]
    fn connections_open_with_the_first_message_of_a_phase() {
        let periodic = "load.periodic = { size = '1 B', every = '10 s' }";
        assert!(times(periodic, MEMBERS).iter().all(|(begins, _)| *begins == 0.0));
        assert_even(openings(periodic), 10e3);
        let reading = "load.application = { profile = 'meter_reading' }";
        assert_even(openings(reading), 900e3);
        // Exponential times: half of them are below ln 2 times the mean. Standard deviation: 22.
        let poisson = "load.poisson = { size = '1 B', every = '10 s' }";
        let early = openings(poisson).filter(|opens| *opens < 6_931.5).count();
        assert!((900..1_100).contains(&early), "{early}");
    }

    #[test]
    fn synchronised_members_open_together() {
        let together = |load: &str| openings(&format!("load.{load}")).all(|opens| opens == 0.0);
        assert!(together("periodic = { size = '1 B', every = '10 s', synchronised = true }"));
        assert!(together("poisson = { size = '1 B', every = '10 s', synchronised = true }"));
        let periods = "on = '1 s', off = '1 s', size = '1 B', synchronised = true";
        assert!(together(&format!("on_off = {{ {periods} }}")));
        assert!(together(&format!("on_off = {{ {periods}, rate = '1 kbit/s' }}")));
        // The random delay of the first message delays the connection as well.
        let jitter =
            "periodic = { size = '1 B', every = '24 h', synchronised = true, jitter = '8 s' }";
        assert_even(openings(&format!("load.{jitter}")), 8e3);
    }

    #[test]
    fn greedy_members_open_with_their_on_periods() {
        // Half of the members are in an on period at the start and open within a second. The others
        // wait for their first on period, 10 s on average.
        let greedy = "load.on_off = { on = '10 s', off = '10 s', size = '1 B' }";
        let (mut now, mut later) = (0, 0);
        let mut distinct: Vec<u64> = Vec::new();
        for opens in openings(greedy) {
            *if opens <= 1e3 { &mut now } else { &mut later } += 1;
            distinct.push((opens * 1e6) as u64);
        }
        distinct.sort_unstable();
        distinct.dedup();
        // 1,000 in an on period, and a tenth of the others within the first second.
        assert!((1_000..1_150).contains(&now) && (850..1_000).contains(&later), "{now} {later}");
        assert!(distinct.len() > 1_990, "{}", distinct.len());
        // With a rate, the first message follows after a part of its generation time.
        let paced = "load.on_off = { on = '10 s', off = '1 ns', rate = '8 bit/s', size = '4 B', \
                     spread = 'fixed' }";
        assert_even(openings(paced), 4e3);
    }

    #[test]
    fn connections_of_event_bursts_open_before_the_event() {
        assert_even(openings("load.burst = { size = '1 B', at = '60 s', share = '1 %' }"), 60e3);
        assert_even(openings("load.burst = { size = '1 B', at = '0 s', spread = '7 s' }"), 7e3);
    }

    #[test]
    fn a_recorded_trace_determines_when_connections_open() {
        assert!(openings("load.trace.file = 'x.csv'").all(|opens| opens == f64::INFINITY));
    }

    #[test]
    fn several_flows_without_a_phase_start_at_random_times_and_a_single_one_at_once() {
        let dialogue = "load.request_response = { request = '1 B', response = '1 B'";
        let spans = [
            ("load = 'bulk'".to_owned(), 1e3),
            ("load.transfer.size = '1 kB'".to_owned(), 1e3),
            (format!("{dialogue} }}"), 1e3),
            (format!("{dialogue}, think = '2 s', pause = '18 s' }}"), 20e3),
        ];
        for (load, millis) in &spans {
            let all = times(load, MEMBERS);
            assert!(all.iter().all(|(begins, opens)| begins == opens), "{load}");
            assert_even(all.into_iter().map(|(_, opens)| opens), *millis);
            assert!(times(load, 1).iter().all(|&at| at == (0.0, 0.0)), "{load}");
        }
    }
}
