//! Rights and kernel features that the emulator and the congestion control algorithms need.

use gridhaul_linux::{
    available_congestion_control, is_root, may_open_tun, succeeds_in_network_namespace,
};

use super::{Feature, is_program, package};

/// The rights of root.
pub(super) fn root() -> Feature {
    Feature::new("root", is_root(), "tests that install packages", "run as root, or use sudo")
}

/// One entry for each right, program and kernel feature.
pub(super) fn features() -> Vec<Feature> {
    let registered = available_congestion_control();
    let is_registered = |name: &str| registered.iter().any(|registered| registered == name);
    let missing: Vec<_> = gridhaul_cc::missing_requirements()
        .into_iter()
        .map(|requirement| requirement.remedy)
        .collect();
    vec![
        Feature::new(
            "network namespaces",
            succeeds_in_network_namespace("true", &[]),
            "backend emu",
            "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1",
        ),
        Feature::new(
            "TUN devices",
            may_open_tun(),
            "backend emu",
            "modprobe tun; chmod 666 /dev/net/tun; in a container, pass --device /dev/net/tun",
        ),
        Feature::new("ip (iproute2)", is_program("ip"), "backend emu", package("iproute2")),
        Feature::new(
            "tc (iproute2) with HTB",
            succeeds_in_network_namespace("tc", &["qdisc", "add", "dev", "lo", "root", "htb"]),
            "shapers (backend emu)",
            format!("{}; modprobe sch_htb", package("iproute2")),
        ),
        Feature::new(
            "kernel TCP: cubic and reno",
            is_registered("cubic") && is_registered("reno"),
            "backend emu",
            "modprobe tcp_cubic",
        ),
        Feature::new("kernel TCP: bbr", is_registered("bbr"), "backend emu", "modprobe tcp_bbr"),
        Feature::new(
            "kernel TCP: gh_vegas, gh_medx",
            missing.is_empty(),
            "`gridhaul cc`",
            missing.join("; "),
        ),
    ]
}
