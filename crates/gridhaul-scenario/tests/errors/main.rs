//! Error messages of invalid scenarios. Read `errors.txt` as a whole: every message should
//! be sufficient to correct the scenario.

#[path = "../golden/mod.rs"]
mod golden;
mod plans;

use gridhaul_scenario::Scenario;

use self::plans::{PLAN, PLANS, SWEEPS};

/// A scenario that is right. Each case below replaces one part of it by another.
const RIGHT: &str = r#"title = "One meter"
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

const LINE_OF_MILES: &str =
    "power_line = { class = \"narrowband\", distance = \"2 miles\" }\nboth =";
const LINE_OF_SPANS: &str =
    "power_line = { class = \"broadband\", distance = \"2 km\", span = \"1 m\" }\nboth =";

const SYNTAX: &[(&str, &str, &str)] = &[
    ("no closing quote", "\"One meter\"", "\"One meter"),
    ("no quotes", "\"60 s\"", "60 s"),
    ("a table twice", "[node.head]", "[node.meter]"),
    ("not TOML at all", "title = \"One meter\"", "\u{1}\u{2} PNG"),
    ("unknown key", "duration =", "durration ="),
    ("unknown key, far from any", "stack = \"plain\"", "colour = \"red\""),
    ("unknown key in an inline table", "delay =", "dealy ="),
    ("missing key", "duration = \"60 s\"\n", ""),
    ("missing key in a table", "load = \"bulk\"\n", ""),
    ("missing key in an inline table", "rate = \"3 Mbit/s\", ", ""),
    ("a number without unit", "\"60 s\"", "60"),
    ("a text without unit", "\"60 s\"", "\"60\""),
    ("unit of another quantity", "\"3 Mbit/s\"", "\"3 MB/s\""),
    ("unit as ns-2 writes it", "\"3 Mbit/s\"", "\"3Mb\""),
    ("unit as others write it", "\"3 Mbit/s\"", "\"3 Mbps\""),
    ("minutes or metres", "\"60 s\"", "\"1 m\""),
    ("negative rate", "\"3 Mbit/s\"", "\"-3 Mbit/s\""),
    ("NaN", "\"60 s\"", "\"NaN s\""),
    ("infinite", "\"60 s\"", "\"inf s\""),
    ("too large", "\"60 s\"", "\"1e400 s\""),
    ("too small", "\"25 ms\"", "\"1e-9 ms\""),
    ("probability without percent", "delay =", "corrupt = \"0.1\", delay ="),
    ("probability above 1", "delay =", "corrupt = \"101 %\", delay ="),
    ("probability as number", "delay =", "corrupt = 0.01, delay ="),
    ("queue in an unknown unit", "delay =", "queue = \"5 frames\", delay ="),
    ("queue of half a packet", "delay =", "queue = \"2.5 packets\", delay ="),
    ("text for a whole number", "[node.meter]", "[node.meter]\ncount = \"ten\""),
    ("negative whole number", "[node.meter]", "[node.meter]\ncount = -1"),
    ("fraction for a whole number", "[node.meter]", "[node.meter]\ncount = 1.5"),
    ("text for yes or no", "congestion_control = \"reno\"", "sack = \"yes\""),
    ("value for a table", "[node.meter]", "[node]\nmeter = 1"),
    ("table for a value", "\"60 s\"", "{ s = 60 }"),
    ("unknown choice", "\"reno\"", "\"renno\""),
    ("unknown load", "\"bulk\"", "\"bulky\""),
    ("two loads", "\"bulk\"", "{ bulk = {}, transfer = { size = \"1 MB\" } }"),
    ("load as a number", "\"bulk\"", "5"),
    ("load without its keys", "\"bulk\"", "\"periodic\""),
    ("two losses", "delay =", "loss = { bernoulli = \"1 %\", packets = [1] }, delay ="),
];

const MEANING: &[(&str, &str, &str)] = &[
    ("empty title", "\"One meter\"", "\" \""),
    ("title of two lines", "\"One meter\"", "\"One\\nmeter\""),
    ("no duration", "\"60 s\"", "\"0 s\""),
    ("warm-up too long", "\"60 s\"", "\"60 s\"\nwarmup = \"1 min\""),
    ("no replications", "\"60 s\"", "\"60 s\"\nreplications = 0"),
    ("no nodes", "[node.meter]\n\n[node.head]", "[node]"),
    ("recording step of nothing", "\"60 s\"", "\"60 s\"\nrecord.interval = \"0 s\""),
    ("recording too often", "\"60 s\"", "\"60 s\"\nrecord.interval = \"1 ns\""),
    ("unknown link to record", "\"60 s\"", "\"60 s\"\nrecord.pcap = [\"feeder\", \"feder\"]"),
    ("a name with a space", "[node.head]", "[node.head]\n[node.\"the head\"]"),
    ("an empty name", "[node.head]", "[node.head]\n[node.\"\"]"),
    ("group without members", "[node.meter]", "[node.meter]\ncount = 0"),
    ("link to an unknown node", "to = \"head\"\nboth", "to = \"haed\"\nboth"),
    ("link to itself", "to = \"head\"\nboth", "to = \"meter\"\nboth"),
    ("link without direction", "both = { rate = \"3 Mbit/s\", delay = \"25 ms\" }\n", ""),
    ("both and forward", "both =", "forward = { rate = \"1 kbit/s\" }\nboth ="),
    ("aggregator without buffer space", "[node.head]", "[node.head]\naggregator.buffer = \"0 B\""),
    ("aggregator with an unknown stack", "[node.head]", "[node.head]\naggregator.stack = \"plan\""),
    (
        "proxy without buffer space",
        "[node.head]",
        "[node.head.proxy]\nmode = \"split\"\nbuffer = \"1 kB\"",
    ),
    ("proxy of an unknown kind", "[node.head]", "[node.head.proxy]\nmode = \"spoof\""),
    (
        "proxy for an unknown flow",
        "[node.head]",
        "[node.head.proxy]\nmode = \"snoop\"\nflows = [\"fiel\"]",
    ),
    (
        "proxy at an aggregator",
        "[node.head]",
        "[node.head]\naggregator = {}\nproxy.mode = \"reflect\"",
    ),
    (
        "proxy that crashes while it is down",
        "[node.head]",
        "[node.head.proxy]\nmode = \"reflect\"\n\
         crash = [{ at = \"1 s\", down = \"5 s\" }, { at = \"3 s\" }]",
    ),
    (
        "together and spread",
        "load = \"bulk\"",
        "count = 3\nstart_spread = \"9 s\"\nload.poisson = { size = \"1 B\", every = \"1 s\", synchronised = true }",
    ),
    ("deadline of a stream", "stack = \"plain\"", "deadline = \"1 s\""),
    (
        "event that overtakes itself",
        "\"bulk\"",
        "{ burst = { size = \"1 B\", at = \"1 s\", count = 3, gap = \"5 s\", every = \"10 s\" } }",
    ),
    (
        "event that hits nobody",
        "\"bulk\"",
        "{ burst = { size = \"1 B\", at = \"1 s\", count = 0, share = \"0 %\" } }",
    ),
    (
        "period outside its profile",
        "\"bulk\"",
        "{ application = { profile = \"pricing\", every = \"1 s\" } }",
    ),
    ("unknown profile", "\"bulk\"", "{ application = { profile = \"price\" } }"),
    ("deadline of nothing", "stack = \"plain\"", "deadline = \"0 s\""),
    (
        "burst of a datagram without a rate",
        "stack = \"plain\"\nload = \"bulk\"",
        "load.on_off = { size = \"1 B\", on = \"1 s\", off = \"1 s\" }\ntransport = \"datagram\"",
    ),
    ("rate of nothing", "\"3 Mbit/s\"", "\"0 bit/s\""),
    ("lost packet 0", "delay =", "loss.packets = [3, 0], delay ="),
    (
        "a state that never changes",
        "delay =",
        "loss.gilbert_elliott = { good_to_bad = \"0 %\", bad_to_good = \"0 %\" }, delay =",
    ),
    ("outage of no length", "delay =", "outage = [{ start = \"1 s\", length = \"0 s\" }], delay ="),
    (
        "outage without end",
        "delay =",
        "outage = [{ start = \"1 s\", length = \"2 s\", every = \"2 s\" }], delay =",
    ),
    (
        "paired with nothing",
        "delay =",
        "load_latency = { paired_with = \"feeder.bakward\" }, delay =",
    ),
    (
        "paired with itself",
        "delay =",
        "load_latency = { paired_with = \"feeder.forward\" }, delay =",
    ),
    ("a period of nothing", "delay =", "load_latency = { period = \"0 s\" }, delay ="),
    ("faster under load", "delay =", "load_latency = { idle = \"3 s\" }, delay ="),
    (
        "compression to nothing",
        "delay =",
        "compression = { header = \"0 B\", payload_ratio = 0.0, overhead = \"1 MB\" }, delay =",
    ),
    (
        "shaper of nothing",
        "delay =",
        "shaper = { rate = \"0 bit/s\", burst = \"0 B\", queue = \"0 packets\" }, delay =",
    ),
    (
        "share of an unknown flow",
        "delay =",
        "shaper = { rate = \"1 Mbit/s\", share.readings.guarantee = \"1 Mbit/s\" }, delay =",
    ),
    (
        "share of nothing, and a limit beyond the rate",
        "delay =",
        "shaper = { rate = \"1 Mbit/s\", share.reading = { guarantee = \"0 bit/s\", limit = \"2 Mbit/s\" } }, delay =",
    ),
    (
        "more guaranteed than there is",
        "delay =",
        "shaper = { rate = \"1 Mbit/s\", share.reading.guarantee = \"2 Mbit/s\" }, delay =",
    ),
    (
        "share of a flow that goes elsewhere",
        "[stack.plain]",
        "[link.spare]\nfrom = \"meter\"\nto = \"head\"\nboth = { rate = \"1 Mbit/s\", shaper = { rate = \"1 Mbit/s\", share.reading.guarantee = \"1 Mbit/s\" } }\n\n[stack.plain]",
    ),
    (
        "shaper before the links of a group",
        "[node.meter]\n\n[node.head]\n\n[link.feeder]\nfrom = \"meter\"\nto = \"head\"\nboth = {",
        "[node.meter]\ncount = 10\n\n[node.head]\n\n[link.feeder]\nfrom = \"meter\"\nto = \"head\"\nboth = { shaper.rate = \"1 Mbit/s\",",
    ),
    (
        "critical throughput of nothing",
        "delay =",
        "load_latency = { critical = \"0 bit/s\" }, delay =",
    ),
    (
        "both a power line and half of a link",
        "both = { rate",
        "power_line.class = \"broadband\"\nforward = {}\nboth = { rate",
    ),
    ("unknown power line", "both =", "power_line.class = \"wideband\"\nboth ="),
    ("a power line of unknown length", "both =", LINE_OF_MILES),
    (
        "a power line of no length",
        "both =",
        "power_line = { class = \"broadband\", distance = \"0 m\" }\nboth =",
    ),
    ("regenerators everywhere", "both =", LINE_OF_SPANS),
    (
        "no way between regenerators",
        "both =",
        "power_line = { class = \"broadband\", span = \"0 m\" }\nboth =",
    ),
    (
        "a budget for nothing",
        "both =",
        "power_line = { class = \"broadband\", budget = \"9 dB\" }\nboth =",
    ),
    (
        "a line that amplifies",
        "both =",
        "power_line = { class = \"broadband\", shadowing = true, attenuation_per_km = \"-1 dB\" }\nboth =",
    ),
    (
        "attenuation that varies by less than nothing",
        "delay =",
        "shadowing = { margin = \"10 dB\", deviation = \"-4 dB\" }, delay =",
    ),
    (
        "attenuation that never stays",
        "delay =",
        "shadowing = { margin = \"10 dB\", deviation = \"4 dB\", coherence = \"0 s\" }, delay =",
    ),
    (
        "a line of no spans",
        "delay =",
        "shadowing = { margin = \"10 dB\", deviation = \"4 dB\", spans = 0 }, delay =",
    ),
    (
        "a level that is a power",
        "delay =",
        "shadowing = { margin = \"10 dBm\", deviation = \"4 dB\" }, delay =",
    ),
    ("bursts of nothing", "delay =", "noise = [{ length = \"0 s\", gap = \"1 s\" }], delay ="),
    ("a burst without end", "delay =", "noise = [{ length = \"1 s\", gap = \"0 s\" }], delay ="),
    (
        "bursts without number",
        "delay =",
        "noise = [{ length = \"1 us\", gap = \"1 us\" }], delay =",
    ),
    (
        "bursts that do nothing",
        "delay =",
        "noise = [{ length = \"1 ms\", gap = \"1 s\", loss = \"0 %\" }], delay =",
    ),
    ("RED in two units", "delay =", "aqm.red = { min = \"5 kB\" }, delay ="),
    ("RED swapped", "delay =", "aqm.red = { min = \"15 packets\", max = \"5 packets\" }, delay ="),
    ("RED that never acts", "delay =", "queue = \"5 packets\", aqm.red = {}, delay ="),
    ("RED without memory", "delay =", "aqm.red = { weight = 0 }, delay ="),
    ("RED with no packet", "delay =", "aqm.red = { packet = \"0 B\" }, delay ="),
    ("CoDel swapped", "delay =", "aqm.codel = { target = \"1 s\" }, delay ="),
    ("PIE without rest", "delay =", "aqm.pie = { update = \"0 s\" }, delay ="),
    ("PIE with a negative alpha", "delay =", "aqm.pie = { alpha = -1 }, delay ="),
    ("FQ-CoDel without turns", "delay =", "aqm.fq_codel = { quantum = \"0 B\" }, delay ="),
    ("FQ-CoDel without queues", "delay =", "aqm.fq_codel = { flows = 0 }, delay ="),
    ("an unknown queueing discipline", "delay =", "aqm.fqcodel = {}, delay ="),
    ("no MSS", "congestion_control = \"reno\"", "mss = \"0 B\""),
    ("absurd MSS", "congestion_control = \"reno\"", "mss = \"64 KiB\""),
    ("no duplicate acknowledgements", "congestion_control = \"reno\"", "dupthresh = 0"),
    ("acknowledgements every 0", "congestion_control = \"reno\"", "ack_every = 0"),
    ("timeouts swapped", "congestion_control = \"reno\"", "rto_min = \"2 s\"\nrto_max = \"1 s\""),
    ("Vegas swapped", "congestion_control = \"reno\"", "vegas_alpha = 4\nvegas_beta = 2.5"),
    ("Vegas above the beta of Linux", "congestion_control = \"reno\"", "vegas_alpha = 5"),
    (
        "Vegas below the alpha of RFCs",
        "congestion_control = \"reno\"",
        "profile = \"rfc\"\nvegas_beta = 0.5",
    ),
    ("Vegas without a queue", "congestion_control = \"reno\"", "vegas_alpha = 0\nvegas_beta = 0"),
    ("Vegas negative", "congestion_control = \"reno\"", "vegas_gamma = -1"),
    ("Vegas not a number", "congestion_control = \"reno\"", "vegas_gamma = nan"),
    (
        "MEDX with delayed acknowledgements",
        "congestion_control = \"reno\"",
        "congestion_control = \"medx\"\ndelayed_ack = \"40 ms\"",
    ),
    (
        "MEDX with timestamps",
        "congestion_control = \"reno\"",
        "congestion_control = \"medx\"\ntimestamps = true",
    ),
    ("MEDX that forgets nothing", "congestion_control = \"reno\"", "medx_alpha = 1.0"),
    ("MEDX without a threshold", "congestion_control = \"reno\"", "medx_beta = 0.0"),
    ("MEDX that compares nothing", "congestion_control = \"reno\"", "medx_buffer = 1"),
    ("window of nothing", "congestion_control = \"reno\"", "receive_window = \"0 segments\""),
    (
        "fixed window of another congestion_control",
        "congestion_control = \"reno\"",
        "congestion_control = \"reno\"\nfixed_window = \"9 segments\"",
    ),
    (
        "no flows",
        "[flow.reading]\nfrom = \"meter\"\nto = \"head\"\nstack = \"plain\"\nload = \"bulk\"",
        "[flow]",
    ),
    (
        "flow from an unknown node",
        "from = \"meter\"\nto = \"head\"\nstack",
        "from = \"metre\"\nto = \"head\"\nstack",
    ),
    ("flow to itself", "to = \"head\"\nstack", "to = \"meter\"\nstack"),
    ("unknown stack", "stack = \"plain\"", "stack = \"plane\""),
    ("no flow at all", "stack = \"plain\"", "count = 0"),
    ("flow after the end", "stack = \"plain\"", "start = \"2 min\""),
    ("one-way link", "both =", "forward ="),
    ("one-way link, the other way", "both =", "reverse ="),
    (
        "two islands",
        "[node.head]",
        "[node.head]\n[node.far]\n[flow.lost]\nfrom = \"far\"\nto = \"head\"\nload = \"bulk\"",
    ),
    (
        "through a group",
        "[link.feeder]",
        "[node]\ngroup.count = 3\nfar = {}\n[link]\na = { from = \"head\", to = \"group\", both.rate = \"1 Mbit/s\" }\nb = { from = \"group\", to = \"far\", both.rate = \"1 Mbit/s\" }\n[flow.lost]\nfrom = \"head\"\nto = \"far\"\nload = \"bulk\"\n[link.feeder]",
    ),
    ("unknown link in a route", "stack = \"plain\"", "route = [\"feedr\"]"),
    ("empty route", "stack = \"plain\"", "route = []"),
    ("route that goes back", "stack = \"plain\"", "route = [\"feeder\", \"feeder\"]"),
    ("message of nothing", "\"bulk\"", "{ periodic = { size = \"0 B\", every = \"1 s\" } }"),
    ("period of nothing", "\"bulk\"", "{ poisson = { size = \"1 B\", every = \"0 s\" } }"),
    ("datagram in bulk", "stack = \"plain\"", "transport = \"datagram\""),
    (
        "datagram with a stack",
        "load = \"bulk\"",
        "load.poisson = { size = \"1 B\", every = \"1 s\" }\ntransport = \"echo\"",
    ),
    (
        "datagram too large",
        "stack = \"plain\"\nload = \"bulk\"",
        "load.poisson = { size = \"64 KiB\", every = \"1 s\" }\ntransport = \"echo\"",
    ),
    (
        "several at once",
        "congestion_control = \"reno\"\n\n[flow.reading]",
        "dupthresh = 0\nmss = \"0 B\"\n\n[flow.reading]\ncount = 0",
    ),
];

#[test]
fn the_right_scenario_is_right() {
    let planned = Scenario::from_toml(&format!("{RIGHT}{PLAN}"), "right.toml").unwrap();
    let again = Scenario::from_toml(&planned.to_toml(), "merged.toml").unwrap();
    assert_eq!(again, planned);
    Scenario::from_toml(RIGHT, "right.toml").unwrap();
}

#[test]
fn messages_are_as_expected() {
    let mut page = String::new();
    for (heading, cases) in [("syntax and types", SYNTAX), ("meaning", MEANING)] {
        page += &format!("# {heading}\n\n");
        for (name, part, replacement) in cases {
            assert!(RIGHT.contains(part), "{name}: no {part:?}");
            page += &message_of(name, &RIGHT.replacen(part, replacement, 1));
        }
    }
    page += "# sweeps\n\n";
    for (name, entry) in SWEEPS {
        page += &message_of(name, &format!("{RIGHT}\n[[sweep]]\n{entry}\n"));
    }
    page += "# plans\n\n";
    for (name, part, replacement) in PLANS {
        assert!(PLAN.contains(part), "{name}: no {part:?}");
        page += &message_of(name, &format!("{RIGHT}{}", PLAN.replacen(part, replacement, 1)));
    }
    golden::check("crates/gridhaul-scenario/tests/errors.txt", &page);
}

fn message_of(name: &str, text: &str) -> String {
    match Scenario::from_toml(text, "grid.toml") {
        Ok(_) => panic!("{name}: nothing is wrong with\n{text}"),
        Err(error) => format!("## {name}\n\n{error}\n\n"),
    }
}
