//! Each alert rule fires when its fault is caused, and not before.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::cases::connect;
use crate::meters::connect_with_ethernet_mss;
use crate::relays::{Relays, Role};

/// Names and expressions of the rules.
fn rules() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring/alerts.yml");
    let text = fs::read_to_string(path).unwrap();
    let value = |key: &str| {
        let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
        lines.filter(|line| line.0.ends_with(key)).map(|line| line.1.to_owned()).collect::<Vec<_>>()
    };
    value("alert").into_iter().zip(value("expr")).collect()
}

/// Samples of a metric: labels and value.
fn samples(metrics: &str, name: &str) -> Vec<(String, f64)> {
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(name));
    lines
        .filter(|rest| rest.starts_with([' ', '{']))
        .map(|rest| {
            let (labels, value) = rest.rsplit_once(' ').unwrap();
            (labels.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Scrapes of a relay: the earlier one is for rates. Without metrics, the relay does not answer.
struct Scrapes {
    before: String,
    now: Option<String>,
    /// Time between both.
    seconds: f64,
}

/// An operator of a comparison.
type Comparison = fn(f64, f64) -> bool;

impl Scrapes {
    fn of(relays: &Relays, role: Role) -> Self {
        Self { before: String::new(), now: Some(relays.metrics(role)), seconds: 1.0 }
    }

    /// Values of one side of a comparison, as the language of Prometheus defines it. The scrape at
    /// the start of the relay has no counts.
    fn values(&self, term: &str) -> Vec<f64> {
        let now = self.now.as_deref().unwrap_or("");
        let value = |sample: &(String, f64)| sample.1;
        if let Ok(number) = term.parse() {
            return vec![number];
        }
        if term.starts_with("up{") {
            return vec![f64::from(u8::from(self.now.is_some()))];
        }
        if let Some((one, other)) = term.split_once(" / ") {
            let (one, other) = (self.values(one), self.values(other));
            return one.iter().zip(&other).map(|(one, other)| one / other).collect();
        }
        if let Some((_, rest)) = term.split_once("rate(") {
            let name = rest.split('[').next().unwrap();
            let before = samples(&self.before, name);
            let earlier =
                |labels: &str| before.iter().find(|sample| sample.0 == labels).map_or(0.0, value);
            let rate = |(labels, value): &(String, f64)| (value - earlier(labels)) / self.seconds;
            return samples(now, name).iter().map(rate).collect();
        }
        samples(now, term).iter().map(value).collect()
    }

    /// Whether an expression has a result.
    fn fires(&self, expression: &str) -> bool {
        expression.split(" or ").any(|comparison| {
            let operators: [(&str, Comparison); 3] = [
                (" == ", |one, other| (one - other).abs() < 1e-9),
                (" > ", |one, other| one > other),
                (" < ", |one, other| one < other),
            ];
            let found = operators
                .iter()
                .find_map(|(operator, compare)| Some((comparison.split_once(operator)?, compare)));
            let ((one, other), compare) = found.expect("a comparison");
            let limits = self.values(other);
            let limit = |index: usize| limits.get(index).or(limits.first()).copied();
            let values = self.values(one).into_iter().enumerate();
            values
                .into_iter()
                .any(|(index, value)| limit(index).is_some_and(|limit| compare(value, limit)))
        })
    }
}

/// Whether a rule fires. The test does not wait for minutes: an age of 300 s becomes one of 0.3 s.
pub(crate) fn fires(relays: &Relays, role: Role, rule: &str) -> bool {
    let rules = rules();
    let (_, expression) = rules.iter().find(|found| found.0 == rule).expect(rule);
    Scrapes::of(relays, role).fires(&expression.replace("> 300", "> 0.3"))
}

fn wait(relays: &Relays, role: Role, rule: &str) {
    relays.wait_until(rule, |relays| fires(relays, role, rule));
}

/// Rules that this file tests; `RelayRecordsLost` is tested where records are lost.
const TESTED: [&str; 9] = [
    "RelayDown",
    "RelayDeliveryFails",
    "RelayRecordsWait",
    "RelayLogFills",
    "RelayRecordsLost",
    "RelayUpstreamDown",
    "RelayCollectorMissing",
    "RelayRefusesConnections",
    "RelayMetersFull",
];

#[test]
fn no_rule_fires_while_both_relays_work() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    meter.write_all(b"line\n").unwrap();
    relays.wait_until("both shards are connected", |relays| {
        relays.ask(Role::Collector, "/status").unwrap()["upstreams_connected_count"] == 2
    });
    relays.wait_until_received(5);
    relays.wait_until_delivered();
    let names: Vec<_> = rules().into_iter().map(|rule| rule.0).collect();
    assert_eq!(names, TESTED, "every rule has a test");
    for role in [Role::Collector, Role::Head] {
        let metrics = relays.metrics(role);
        assert!(!metrics.contains("Value of the status"), "every metric has a meaning: {metrics}");
        let types = metrics.matches("# TYPE").count();
        assert!(types > 10 && metrics.matches("# HELP").count() == types);
        for rule in TESTED {
            assert!(!fires(&relays, role, rule), "{rule} of {role:?}:\n{metrics}");
        }
    }
}

#[test]
fn rules_of_a_collector_without_a_head_fire() {
    let mut relays = Relays::new("local", "");
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let small = "log.limit = \"4 MB\"\nlog.segment = \"2 MB\"";
    fs::write(&path, text.replace("log.segment = \"2 MB\"", small)).unwrap();
    relays.start(Role::Collector);
    wait(&relays, Role::Collector, "RelayUpstreamDown");
    assert!(!fires(&relays, Role::Collector, "RelayLogFills"));
    let meter = connect_with_ethernet_mss(relays.meters);
    meter.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let line = [&[b'x'; 19_999][..], b"\n"].concat();
    // A busy relay may not have read the previous lines when the time for writing is over.
    relays.wait_until("RelayLogFills", |relays| {
        (0..20).for_each(|_| drop((&meter).write(&line)));
        fires(relays, Role::Collector, "RelayLogFills")
    });
    wait(&relays, Role::Collector, "RelayRecordsWait");
    relays.kill(Role::Collector);
    let down = Scrapes { before: String::new(), now: None, seconds: 1.0 };
    assert!(down.fires(&rules()[0].1), "{}", rules()[0].1);
}

#[test]
fn rules_of_a_head_fire_while_its_destination_is_unreachable() {
    let broker = gridhaul_testing::free_address();
    let deliver = format!("deliver.mqtt.broker = \"{broker}\"");
    let mut relays = Relays::with_delivery("local", "", &deliver);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    meter.write_all(b"line\n").unwrap();
    wait(&relays, Role::Head, "RelayDeliveryFails");
    wait(&relays, Role::Head, "RelayRecordsWait");
    assert!(!fires(&relays, Role::Head, "RelayCollectorMissing"));
    relays.kill(Role::Collector);
    wait(&relays, Role::Head, "RelayCollectorMissing");
    let status = relays.ask(Role::Head, "/status").unwrap();
    assert_eq!(status["collector_connections_count"]["collector"], 0, "{status}");
    assert!(status["delivery_error_age_s"].as_f64() > Some(0.0), "{status}");
    assert!(status["backlog_max_byte"].as_u64() > Some(0), "{status}");
}

#[test]
fn rules_about_connections_fire() {
    let mut relays = Relays::new("local", "meters = 2\nconnections_per_source = 2");
    relays.start(Role::Collector);
    assert!(!fires(&relays, Role::Collector, "RelayMetersFull"));
    let open: Vec<TcpStream> = (0..2).map(|_| connect(&relays)).collect();
    wait(&relays, Role::Collector, "RelayMetersFull");
    drop(open);
    relays.kill(Role::Collector);
    relays.configure(Role::Collector, "allow = [\"192.0.2.0/24\"]");
    relays.start(Role::Collector);
    let before = relays.metrics(Role::Collector);
    for _ in 0..10 {
        drop(TcpStream::connect(relays.meters));
    }
    let rule = rules().into_iter().find(|rule| rule.0 == "RelayRefusesConnections").unwrap();
    relays.wait_until("connections are refused", |relays| {
        // Ten in at most five seconds.
        let now = Some(relays.metrics(Role::Collector));
        Scrapes { before: before.clone(), now, seconds: 5.0 }.fires(&rule.1)
    });
}
