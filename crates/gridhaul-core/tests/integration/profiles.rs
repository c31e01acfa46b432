//! Checks that the profile table of the reference matches the code, for every key of every profile.

use std::collections::BTreeMap;

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{IpVersion, Profile, Stack};
use gridhaul_scenario::schema;
use gridhaul_scenario::units::Duration;
use gridhaul_testing::golden;
use serde_json::Value;

const PAGE: &str = "docs/reference/profiles.md";

const PROFILES: [(&str, Profile); 3] =
    [("rfc", Profile::Rfc), ("linux", Profile::Linux), ("ns2", Profile::Ns2)];

const HEAD: &str = "\
# Profiles of TCP stacks

<!-- Made from the code by crates/gridhaul-core/tests/integration/profiles.rs; GRIDHAUL_UPDATE=1 \
cargo test rewrites it. -->

A stack takes every key that it does not set from its `profile`; `linux` is the default. A value \
in this table may be
set in the stack explicitly without any effect, except where a note says so.

| key | `rfc` | `linux` | `ns2` |
|---|---|---|---|
";

const TAIL: &str = "
- **`recovery`** is that of the profile's `congestion_control`; another `congestion_control` has \
its own default.
- **`header`** follows from the `ip` of the flow: 40 B is IPv4, 60 B IPv6.
- **`initial_window`** of `rfc` is min(10 · mss, max(2 · mss, 14600 B)) (RFC 6928, section 2): the \
value is that of the
  profile's `mss`.
- **`fixed_window`** is valid only with `congestion_control = \"fixed\"`.
- **`delayed_ack`** of `linux` adapts to the interval between data segments, up to the second \
value; a written value replaces both.
- **`sack`** of `ns2` is that of the `recovery`: true with `sack`.
- **`medx_*` and `vegas_*`** are used by these congestion control algorithms only.
- **`handshake`** of `ns2` is the SYN of its one-way agents: it takes a round trip, and the \
SYN-ACK is not acknowledged.
";

/// Values of a profile by key, in the syntax of a scenario; several values where a note explains
/// them.
fn values(profile: Profile) -> BTreeMap<&'static str, Vec<String>> {
    let params = resolve(&Stack { profile, ..Stack::default() });
    // Windows that follow the segment size are counted in segments.
    let double = Stack { mss: Some(bytes(2 * params.mss)), profile, ..Stack::default() };
    let double = resolve(&double);
    let window = |own: u32, of_double: u32| match own {
        u32::MAX => "unlimited".to_owned(),
        _ if of_double == own => quoted(&format!("{own} B")),
        _ if own.is_multiple_of(params.mss) => quoted(&format!("{} segments", own / params.mss)),
        _ => quoted(&format!("{own} B")),
    };
    let receive_window = window(params.receive_window, double.receive_window);
    let initial_window = match profile {
        Profile::Rfc => quoted(&format!("{} B", params.initial_window)),
        _ => window(params.initial_window, double.initial_window),
    };
    let headers = IpVersion::ALL
        .map(|ip| StackParams::resolve_for_ip(&Stack { profile, ..Stack::default() }, ip));
    let mut delayed_ack = vec![time(params.delayed_ack)];
    if params.delayed_ack_max != params.delayed_ack {
        delayed_ack.push(time(params.delayed_ack_max));
    }
    let [alpha, beta, gamma] = params.vegas.thresholds();
    let word = |value: serde_json::Value| value.to_string();
    let yes = |value: bool| vec![value.to_string()];
    BTreeMap::from([
        (
            "congestion_control",
            vec![word(serde_json::to_value(params.congestion_control).unwrap())],
        ),
        ("recovery", vec![word(serde_json::to_value(params.recovery).unwrap())]),
        ("mss", vec![quoted(&format!("{} B", params.mss))]),
        ("header", headers.map(|params| quoted(&format!("{} B", params.header))).to_vec()),
        ("receive_window", vec![receive_window.clone()]),
        ("initial_window", vec![initial_window]),
        ("initial_ssthresh", vec![window(params.initial_ssthresh, double.initial_ssthresh)]),
        ("fixed_window", vec![receive_window]),
        ("handshake", yes(params.handshake)),
        ("delayed_ack", delayed_ack),
        ("ack_every", vec![params.ack_every.to_string()]),
        ("quick_ack", vec![params.quick_ack.to_string()]),
        ("timestamps", yes(params.timestamps)),
        ("sack", yes(params.sack)),
        ("ecn", yes(params.ecn)),
        ("mtu_probing", yes(params.mtu_probing)),
        ("dupthresh", vec![params.dupthresh.to_string()]),
        ("limited_transmit", yes(params.limited_transmit)),
        ("rto_initial", vec![time(params.rto_initial)]),
        ("rto_min", vec![time(params.rto_min)]),
        ("rto_max", vec![time(params.rto_max)]),
        ("clock_granularity", vec![time(params.clock_granularity)]),
        ("clock_phase", vec![if params.time_every_segment { "–" } else { "random" }.to_owned()]),
        ("restart_after_idle", yes(params.restart_after_idle)),
        ("nagle", yes(params.nagle)),
        ("prr", yes(params.prr)),
        ("hystart", yes(params.hystart)),
        ("vegas_alpha", vec![format!("{alpha:?}")]),
        ("vegas_beta", vec![format!("{beta:?}")]),
        ("vegas_gamma", vec![format!("{gamma:?}")]),
        ("medx_alpha", vec![format!("{:?}", params.medx.alpha)]),
        ("medx_beta", vec![format!("{:?}", params.medx.beta)]),
        ("medx_buffer", vec![params.medx.buffer.to_string()]),
        ("medx_classifier", vec![word(serde_json::to_value(params.medx.classifier).unwrap())]),
    ])
}

/// Keys of a stack in the order of the reference.
fn keys() -> Vec<String> {
    let schema: Value = serde_json::from_str(schema::SCENARIO).expect("JSON");
    let keys = schema["$defs"]["Stack"]["properties"].as_object().expect("a stack has keys");
    keys.keys().filter(|key| *key != "profile").cloned().collect()
}

fn page() -> String {
    let all = PROFILES.map(|(_, profile)| values(profile));
    let mut page = HEAD.to_owned();
    for key in keys() {
        let cells = all.each_ref().map(|values| {
            let values = &values[key.as_str()];
            values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
        });
        page += &format!("| `{key}` | {} |\n", cells.join(" | "));
    }
    page + TAIL
}

#[test]
fn the_page_is_up_to_date() {
    golden::check(PAGE, &page());
}

/// Parses the page in the repository: each value, set in a stack, resolves to the value of the
/// profile. A wrong value on the page therefore fails even if the code that writes the page is
/// wrong.
#[test]
fn values_of_the_page_are_the_defaults_of_the_profile() {
    let path = format!("{}/../../{PAGE}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(path).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        <[&str; 4]>::try_from(cells).expect("a key and three values")
    });
    let rows: Vec<_> = rows.collect();
    let named: Vec<_> = rows.iter().map(|[key, ..]| key.trim_matches('`').to_owned()).collect();
    assert_eq!(named, keys(), "each key once, in the order of the reference");
    for (index, (name, profile)) in PROFILES.into_iter().enumerate() {
        let own = resolve(&Stack { profile, ..Stack::default() });
        for row in &rows {
            let key = row[0].trim_matches('`');
            let value = row[index + 1].split(", ").next().unwrap().trim_matches('`');
            if (key, value) == ("initial_ssthresh", "unlimited") {
                assert_eq!(own.initial_ssthresh, u32::MAX, "{name}");
                continue;
            }
            if key == "clock_phase" {
                assert_eq!(own.clock_phase, None, "{name}");
                assert_eq!(value == "random", !own.time_every_segment, "{name}");
                continue;
            }
            let stack: Stack = toml::from_str(&format!("profile = \"{name}\"\n{key} = {value}\n"))
                .unwrap_or_else(|error| panic!("{name}, {key} = {value}: {error}"));
            let mut written = resolve(&stack);
            if key == "delayed_ack" {
                written.delayed_ack_max = own.delayed_ack_max;
            }
            if key == "mss" {
                // A stated size does not follow the MTU of the host's link.
                written.derives_mss = own.derives_mss;
            }
            assert_eq!(written, own, "{name}: {key} = {value}");
        }
    }
}

/// The doc comments of profiles contain no values; only the table does.
#[test]
fn doc_comments_of_profiles_contain_no_values() {
    let schema: Value = serde_json::from_str(schema::SCENARIO).expect("JSON");
    let profiles = schema["$defs"]["Profile"]["oneOf"].as_array().expect("three profiles");
    for profile in profiles {
        let text = profile["description"].as_str().unwrap();
        let values = [" ms", " s,", " s.", " window 2", "no handshake", "without handshake"];
        assert!(values.iter().all(|value| !text.contains(value)), "{text}");
    }
}

fn resolve(stack: &Stack) -> StackParams {
    StackParams::resolve(stack)
}

fn bytes(count: u32) -> gridhaul_scenario::units::Bytes {
    gridhaul_scenario::units::Bytes::new(u64::from(count))
}

fn time(time: Duration) -> String {
    quoted(&time.to_string())
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
