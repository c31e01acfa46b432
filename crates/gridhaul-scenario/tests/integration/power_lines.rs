//! Link parameters derived from a power line.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::{Direction, Link, PowerLine};
use gridhaul_scenario::units::Duration;

const HEAD: &str = "title = \"line\"\nduration = \"60 s\"\nnode.a = {}\nnode.b = {}\n\
                    flow.f = { from = \"a\", to = \"b\", load = \"bulk\" }\n";

fn scenario(link: &str, more: &str) -> Scenario {
    let text = format!("{HEAD}[link.l]\nfrom = \"a\"\nto = \"b\"\n{link}\n{more}");
    Scenario::from_toml(&text, "line.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn link(keys: &str) -> Link {
    scenario(keys, "").link["l"].clone()
}

fn line(keys: &str) -> PowerLine {
    link(&format!("power_line = {{ {keys} }}")).power_line.unwrap()
}

/// The keys of a direction as the merged scenario shows them.
fn shown(direction: Option<&Direction>) -> String {
    toml::to_string(direction.unwrap()).unwrap()
}

#[test]
fn the_delay_grows_with_the_distance_by_the_span() {
    // By hand: one unit of 12.5 ms for each span that is begun, and 5 µs for a kilometre.
    let cases = [
        ("narrowband", None, 1, 12_500_000),
        ("narrowband", Some("1 km"), 1, 12_505_000),
        ("narrowband", Some("3 km"), 1, 12_515_000),
        ("narrowband", Some("9.5 km"), 4, 50_047_500),
        ("broadband", None, 1, 12_500_000),
        ("broadband", Some("300 m"), 1, 12_501_500),
        ("broadband", Some("800 m"), 1, 12_504_000),
        ("broadband", Some("801 m"), 2, 25_004_005),
        ("broadband", Some("3.2 km"), 4, 50_016_000),
        ("broadband", Some("10 km"), 13, 162_550_000),
        ("future-broadband", Some("100 km"), 125, 1_563_000_000),
    ];
    for (class, distance, spans, delay) in cases {
        let distance = distance.map_or(String::new(), |far| format!(", distance = \"{far}\""));
        let line = line(&format!("class = \"{class}\"{distance}"));
        let expected = (spans, Duration::from_nanos(delay));
        assert_eq!((line.spans(), line.delay()), expected, "{class}{distance}");
    }
    let line =
        line("class = \"broadband\", distance = \"2 km\", span = \"200 m\", processing = \"1 ms\"");
    assert_eq!((line.spans(), line.delay()), (10, Duration::from_micros(10_010)));
}

#[test]
fn a_line_spells_out_both_directions() {
    let bare = link("power_line.class = \"broadband\"");
    let expected = "rate = \"3 Mbit/s\"\ndelay = \"12.5 ms\"\nqueue = \"100 packets\"\n";
    assert_eq!(shown(bare.forward()), expected);
    assert_eq!(bare.forward(), bare.reverse());

    let noisy = link(
        "power_line = { class = \"narrowband\", distance = \"8 km\", shadowing = true, \
         noise = true }",
    );
    // Three spans of 2.667 km lose 5.333 dB each; a second brings a burst on each of them.
    let expected = "rate = \"130 kbit/s\"\ndelay = \"37.54 ms\"\nqueue = \"100 packets\"\n\n\
                    [shadowing]\nmargin = \"10.667 dB\"\ndeviation = \"4 dB\"\n\
                    coherence = \"1 s\"\n\
                    spans = 3\n\n[[noise]]\nlength = \"100 us\"\ngap = \"333333.333 us\"\n\
                    loss = \"10 %\"\ntiming = \"random\"\n";
    assert_eq!(shown(noisy.reverse()), expected);

    // Further apart than the class is meant for: half of 1.9 km, 47.5 dB of 50 dB.
    let keys = "class = \"broadband\", distance = \"1.9 km\", span = \"1 km\", shadowing = true";
    assert_eq!(line(keys).direction().shadowing.unwrap().margin.to_string(), "2.5 dB");
    let keys = format!("{keys}, attenuation_per_km = \"80 dB\", budget = \"60 dB\"");
    assert_eq!(line(&keys).direction().shadowing.unwrap().margin.to_string(), "-16 dB");
}

#[test]
fn explicit_keys_of_a_direction_override_the_power_line() {
    let link = link(
        "power_line = { class = \"broadband\", shadowing = true, noise = true }\n\
         [link.l.forward]\nrate = \"2 Mbit/s\"\nqueue = \"50 packets\"\nloss.bernoulli = \"1 %\"\n\
         shadowing = { margin = \"3 dB\", deviation = \"1 dB\" }\n\
         noise = [{ length = \"1 ms\", gap = \"9 ms\", timing = \"periodic\" }]",
    );
    let expected = "rate = \"2 Mbit/s\"\ndelay = \"12.5 ms\"\nqueue = \"50 packets\"\n\n\
                    [loss]\nbernoulli = \"1 %\"\n\n\
                    [shadowing]\nmargin = \"3 dB\"\ndeviation = \"1 dB\"\nspans = 1\n\n\
                    [[noise]]\nlength = \"1 ms\"\ngap = \"9 ms\"\nloss = \"100 %\"\n\
                    timing = \"periodic\"\n";
    assert_eq!(shown(link.forward()), expected);
    // The other direction has no keys of its own, so it equals that of the power line.
    assert_eq!(link.reverse(), Some(&link.power_line.unwrap().direction()));
    let zero = self::link("power_line.class = \"broadband\"\nboth.delay = \"0 s\"");
    assert_eq!(zero.forward().unwrap().delay, Duration::ZERO);
}

#[test]
fn a_sweep_over_the_power_line_changes_the_derived_parameters() {
    let delays = |scenario: &Scenario| -> Vec<String> {
        let points = scenario.points().unwrap();
        let shown = |point: &gridhaul_scenario::scenario::ScenarioPoint| {
            let direction = point.scenario.link["l"].forward().unwrap().clone();
            let margin =
                direction.shadowing.map_or(String::new(), |shadowing| shadowing.margin.to_string());
            format!("{} {} {margin}", direction.rate, direction.delay)
        };
        points.iter().map(shown).collect()
    };
    let keys = "power_line = { class = \"broadband\", distance = \"800 m\", shadowing = true }";
    let sweep = "[[sweep]]\nvary.\"link.l.power_line.distance\" = [\"400 m\", \"1.6 km\"]";
    let swept = scenario(keys, sweep);
    let expected = ["3 Mbit/s 12.502 ms 30 dB", "3 Mbit/s 25.008 ms 10 dB"];
    assert_eq!(delays(&swept), expected);
    // The merged scenario, with all parameters explicit, has the same points.
    let merged = Scenario::from_toml(&swept.to_toml(), "merged.toml").unwrap();
    assert_eq!(delays(&merged), expected);
    // Own keys stay.
    let own = scenario(&format!("{keys}\nboth.delay = \"1 ms\""), sweep);
    assert_eq!(delays(&own), ["3 Mbit/s 1 ms 30 dB", "3 Mbit/s 1 ms 10 dB"]);
    // A single derived parameter can be varied.
    let margin = "[[sweep]]\nvary.\"link.l.both.shadowing.margin\" = [\"1 dB\", \"-2 dB\"]";
    let expected = ["3 Mbit/s 12.504 ms 1 dB", "3 Mbit/s 12.504 ms -2 dB"];
    assert_eq!(delays(&scenario(keys, margin)), expected);
    let rate = "[[sweep]]\nvary.\"link.l.both.rate\" = [\"1 Mbit/s\"]";
    assert_eq!(delays(&scenario(keys, rate)), ["1 Mbit/s 12.504 ms 10 dB"]);
}
