//! `gridhaul doctor`: what this machine offers.

use std::env;
use std::fs;

use gridhaul_linux::{
    available_congestion_control, is_root, may_open_tun, succeeds_in_network_namespace,
};
use gridhaul_report::TextTable;

use super::error::CommandError;
use crate::terminal::print_tables;

/// One thing that a part of gridhaul can use.
struct Offer<'a> {
    name: &'static str,
    found: bool,
    /// What needs it.
    used_by: &'static str,
    /// How to get it.
    remedy: &'a str,
}

/// Prints one line for each thing: there or not, for what, and how to get it.
pub(crate) fn run() -> Result<(), CommandError> {
    let lacking = gridhaul_cc::missing_requirements();
    let lacking: Vec<_> = lacking.into_iter().map(|it| it.remedy).collect();
    let lacking = lacking.join("; ");
    let row = |offer: &Offer<'_>| {
        let state = if offer.found { "ok" } else { "missing" };
        let remedy = if offer.found { "" } else { offer.remedy };
        [state, offer.name, offer.used_by, remedy].map(String::from).to_vec()
    };
    let offers = offers(&lacking);
    let table = TextTable {
        headers: ["", "what", "used by", "how to get it"].map(String::from).to_vec(),
        rows: offers.iter().map(row).collect(),
        key_columns: 4,
        note: Some(
            "`run`, `sweep`, `compare` and `paper` by simulation and by equations (`--on sim,model`) need \
             none of these.".into(),
        ),
        ..TextTable::default()
    };
    Ok(print_tables(&[table])?)
}

fn offers(lacking: &str) -> Vec<Offer<'_>> {
    let offer = |name, found, used_by, remedy| Offer { name, found, used_by, remedy };
    let registered = available_congestion_control();
    let is_registered = |name: &str| registered.iter().any(|it| it == name);
    vec![
        offer("ns-2 (`ns`)", program("ns"), "conformance tests, benchmarks", "apt-get install ns2"),
        offer("ns-3", ns3(), "benchmarks", "apt-get install libns3-dev"),
        offer("tshark", program("tshark"), "tests of the pcapng files", "apt-get install tshark"),
        offer(
            "bpftool",
            program("bpftool"),
            "tests of what a killed run leaves",
            "apt-get install bpftool",
        ),
        offer("root", is_root(), "tests that install packages", "run as root, or use sudo"),
        offer(
            "network namespaces",
            succeeds_in_network_namespace("true", &[]),
            "runs on real kernels",
            "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1",
        ),
        offer(
            "TUN devices",
            may_open_tun(),
            "runs on real kernels",
            "modprobe tun; chmod 666 /dev/net/tun; in a container, pass --device /dev/net/tun",
        ),
        offer("ip (iproute2)", program("ip"), "runs on real kernels", "apt-get install iproute2"),
        offer(
            "tc (iproute2) with HTB",
            succeeds_in_network_namespace("tc", &["qdisc", "add", "dev", "lo", "root", "htb"]),
            "shapers on real kernels",
            "apt-get install iproute2; modprobe sch_htb",
        ),
        offer(
            "kernel TCP: cubic and reno",
            is_registered("cubic") && is_registered("reno"),
            "runs on real kernels",
            "modprobe tcp_cubic",
        ),
        offer("kernel TCP: bbr", is_registered("bbr"), "runs on real kernels", "modprobe tcp_bbr"),
        offer("kernel TCP: gh_vegas, gh_medx", lacking.is_empty(), "`gridhaul cc`", lacking),
    ]
}

fn program(name: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

fn ns3() -> bool {
    let headers = fs::read_dir("/usr/include").into_iter().flatten().flatten();
    program("ns3")
        || headers.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("ns3"))
}
