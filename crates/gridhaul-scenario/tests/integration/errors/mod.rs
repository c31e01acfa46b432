//! Error messages of invalid scenarios. Read `errors.txt` as a whole: every message should
//! be sufficient to correct the scenario.

mod attacks;
mod coap;
mod meaning;
mod plans;

use gridhaul_scenario::Scenario;
use gridhaul_testing::golden;

use self::attacks::ATTACKS;
use self::coap::COAP;
use self::meaning::MEANING;
use self::plans::{PLAN, PLANS, SWEEPS};

/// A valid scenario. Each case below replaces one part of it by an invalid one.
const VALID: &str = r#"title = "One meter"
duration = "60 s"

[node.meter]

[node.head]

[link.feeder]
from = "meter"
to = "head"
both = { rate = "3 Mbit/s", delay = "25 ms" }

[stack.plain]
congestion_control = "reno"

[flow.reading]
from = "meter"
to = "head"
stack = "plain"
load = "bulk"
"#;

const SYNTAX: &[(&str, &str, &str)] = &[
    ("no closing quote", "\"One meter\"", "\"One meter"),
    ("no quotes", "\"60 s\"", "60 s"),
    ("duplicate table", "[node.head]", "[node.meter]"),
    ("binary file", "title = \"One meter\"", "\u{1}\u{2} PNG"),
    ("unknown key", "duration =", "durration ="),
    ("unknown key without a similar one", "stack = \"plain\"", "colour = \"red\""),
    ("unknown key in an inline table", "delay =", "dealy ="),
    ("key of a stack in a flow", "stack = \"plain\"", "congestion_control = \"cubic\""),
    ("key of a direction in a link", "both =", "queue = \"10 packets\"\nboth ="),
    ("list of flows", "[flow.reading]", "[[flow]]"),
    ("AQM without its keys", "delay =", "aqm = \"codel\", delay ="),
    ("transport UDP", "stack = \"plain\"", "transport = \"udp\""),
    ("missing key", "duration = \"60 s\"\n", ""),
    ("missing key in a table", "load = \"bulk\"\n", ""),
    ("missing key in an inline table", "rate = \"3 Mbit/s\", ", ""),
    ("a number without unit", "\"60 s\"", "60"),
    ("a text without unit", "\"60 s\"", "\"60\""),
    ("unit of another quantity", "\"3 Mbit/s\"", "\"3 MB/s\""),
    ("unit of ns-2", "\"3 Mbit/s\"", "\"3Mb\""),
    ("unit Mbps", "\"3 Mbit/s\"", "\"3 Mbps\""),
    ("replications as a text", "\"60 s\"", "\"60 s\"\nreplications = \"5\""),
    ("negative replications", "\"60 s\"", "\"60 s\"\nreplications = -1"),
    (
        "replications without a largest number",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = \"5 %\" }",
    ),
    (
        "replications until a number",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = 0.05, max = 100 }",
    ),
    (
        "replications of an unknown metric",
        "\"60 s\"",
        "\"60 s\"\nreplications = { until = \"5 %\", max = 100, of = \"goodput\" }",
    ),
    ("ambiguous unit m", "\"60 s\"", "\"1 m\""),
    ("negative rate", "\"3 Mbit/s\"", "\"-3 Mbit/s\""),
    ("NaN", "\"60 s\"", "\"NaN s\""),
    ("infinite", "\"60 s\"", "\"inf s\""),
    ("too large", "\"60 s\"", "\"1e400 s\""),
    ("too small", "\"25 ms\"", "\"1e-9 ms\""),
    ("probability without percent", "delay =", "corrupt = \"0.1\", delay ="),
    ("probability above 1", "delay =", "corrupt = \"101 %\", delay ="),
    ("probability as number", "delay =", "corrupt = 0.01, delay ="),
    ("queue in an unknown unit", "delay =", "queue = \"5 frames\", delay ="),
    ("fraction of a packet", "delay =", "queue = \"2.5 packets\", delay ="),
    ("text for a whole number", "[node.meter]", "[node.meter]\ncount = \"ten\""),
    ("negative whole number", "[node.meter]", "[node.meter]\ncount = -1"),
    ("fraction for a whole number", "[node.meter]", "[node.meter]\ncount = 1.5"),
    ("number in quotes", "[node.meter]", "[node.meter]\ncount = \"5\""),
    ("number of more than 64 bits", "[node.meter]", "[node.meter]\ncount = 99999999999999999999"),
    ("decimal comma", "\"60 s\"", "\"1,5 s\""),
    (
        "list for a table of keys",
        "both = { rate = \"3 Mbit/s\", delay = \"25 ms\" }",
        "both = [\"3 Mbit/s\", \"25 ms\"]",
    ),
    ("empty list for a table of keys", "[node.meter]", "[node]\nmeter = []"),
    ("text for a boolean", "congestion_control = \"reno\"", "sack = \"yes\""),
    ("value for a table", "[node.meter]", "[node]\nmeter = 1"),
    ("table for a value", "\"60 s\"", "{ s = 60 }"),
    ("unknown choice", "\"reno\"", "\"renno\""),
    ("unknown load", "\"bulk\"", "\"bulky\""),
    ("two loads", "\"bulk\"", "{ bulk = {}, transfer = { size = \"1 MB\" } }"),
    ("load as a number", "\"bulk\"", "5"),
    ("load without its keys", "\"bulk\"", "\"periodic\""),
    ("two losses", "delay =", "loss = { bernoulli = \"1 %\", packets = [1] }, delay ="),
];

#[test]
fn the_valid_scenario_is_accepted() {
    let planned = Scenario::from_toml(&format!("{VALID}{PLAN}"), "valid.toml").unwrap();
    let again = Scenario::from_toml(&planned.to_toml(), "merged.toml").unwrap();
    assert_eq!(again, planned);
    Scenario::from_toml(VALID, "valid.toml").unwrap();
}

#[test]
fn messages_are_as_expected() {
    let mut page = String::new();
    for (heading, cases) in [("syntax and types", SYNTAX), ("meaning", MEANING)] {
        page += &format!("# {heading}\n\n");
        for (name, part, replacement) in cases {
            assert!(VALID.contains(part), "{name}: no {part:?}");
            page += &message_of(name, &VALID.replacen(part, replacement, 1));
        }
    }
    page += "# confirmable messages\n\n";
    for (name, keys) in COAP {
        let flow = VALID.replacen("stack = \"plain\"\nload = \"bulk\"", keys, 1);
        page += &message_of(name, &flow);
    }
    page += "# attacks\n\n";
    for (name, attack) in ATTACKS {
        page += &message_of(name, &format!("{VALID}\n{attack}\n"));
    }
    page += "# sweeps\n\n";
    for (name, entry) in SWEEPS {
        page += &message_of(name, &format!("{VALID}\n[[sweep]]\n{entry}\n"));
    }
    page += "# plans\n\n";
    for (name, part, replacement) in PLANS {
        assert!(PLAN.contains(part), "{name}: no {part:?}");
        page += &message_of(name, &format!("{VALID}{}", PLAN.replacen(part, replacement, 1)));
    }
    golden::check("crates/gridhaul-scenario/tests/errors.txt", &page);
}

fn message_of(name: &str, text: &str) -> String {
    match Scenario::from_toml(text, "grid.toml") {
        Ok(_) => panic!("{name}: nothing is wrong with\n{text}"),
        Err(error) => format!("## {name}\n\n{error}\n\n"),
    }
}
