//! `gridhaul doctor`: availability of optional programs and kernel features.

use std::env;
use std::fs;
use std::path::Path;

use gridhaul_linux::{
    available_congestion_control, is_root, may_open_tun, succeeds_in_network_namespace,
};
use gridhaul_report::TextTable;

use super::error::CommandError;
use crate::terminal::print_tables;

/// An optional program or kernel feature.
struct Feature<'a> {
    name: &'static str,
    available: bool,
    /// The part of gridhaul that needs it.
    used_by: &'static str,
    /// How to install or enable it.
    remedy: &'a str,
}

/// Prints one line for each feature: availability, use, and how to install it.
pub(crate) fn run() -> Result<(), CommandError> {
    let missing = gridhaul_cc::missing_requirements();
    let missing: Vec<_> = missing.into_iter().map(|it| it.remedy).collect();
    let missing = missing.join("; ");
    let row = |feature: &Feature<'_>| {
        let state = if feature.available { "ok" } else { "missing" };
        let remedy = if feature.available { "" } else { feature.remedy };
        [state, feature.name, feature.used_by, remedy].map(String::from).to_vec()
    };
    let features = features(&missing);
    let table = TextTable {
        headers: ["", "feature", "used by", "how to install"].map(String::from).to_vec(),
        rows: features.iter().map(row).collect(),
        key_columns: 4,
        note: Some(
            "The simulator and the analytical model (`--on sim,model`) need none of these.".into(),
        ),
        ..TextTable::default()
    };
    Ok(print_tables(&[table])?)
}

fn features(missing: &str) -> Vec<Feature<'_>> {
    let feature = |name, available, used_by, remedy| Feature { name, available, used_by, remedy };
    let registered = available_congestion_control();
    let is_registered = |name: &str| registered.iter().any(|it| it == name);
    vec![
        feature(
            "ns-2 (`ns`)",
            is_program("ns"),
            "conformance tests, benchmarks",
            "apt-get install ns2",
        ),
        feature("ns-3", has_ns3(), "benchmarks", "apt-get install libns3-dev"),
        feature("tshark", is_program("tshark"), "tests of pcapng files", "apt-get install tshark"),
        feature(
            "bpftool",
            is_program("bpftool"),
            "tests of killed runs",
            "apt-get install bpftool",
        ),
        feature(
            "mosquitto",
            // Debian installs it in a folder that is not in the PATH of users.
            is_program("mosquitto") || Path::new("/usr/sbin/mosquitto").is_file(),
            "`gridhaul measure`: MQTT",
            "apt-get install mosquitto",
        ),
        feature("root", is_root(), "tests that install packages", "run as root, or use sudo"),
        feature(
            "network namespaces",
            succeeds_in_network_namespace("true", &[]),
            "backend emu",
            "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1",
        ),
        feature(
            "TUN devices",
            may_open_tun(),
            "backend emu",
            "modprobe tun; chmod 666 /dev/net/tun; in a container, pass --device /dev/net/tun",
        ),
        feature("ip (iproute2)", is_program("ip"), "backend emu", "apt-get install iproute2"),
        feature(
            "tc (iproute2) with HTB",
            succeeds_in_network_namespace("tc", &["qdisc", "add", "dev", "lo", "root", "htb"]),
            "shapers (backend emu)",
            "apt-get install iproute2; modprobe sch_htb",
        ),
        feature(
            "kernel TCP: cubic and reno",
            is_registered("cubic") && is_registered("reno"),
            "backend emu",
            "modprobe tcp_cubic",
        ),
        feature("kernel TCP: bbr", is_registered("bbr"), "backend emu", "modprobe tcp_bbr"),
        feature("kernel TCP: gh_vegas, gh_medx", missing.is_empty(), "`gridhaul cc`", missing),
    ]
}

fn is_program(name: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

fn has_ns3() -> bool {
    let headers = fs::read_dir("/usr/include").into_iter().flatten().flatten();
    is_program("ns3")
        || headers.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("ns3"))
}
