//! `gridhaul doctor`: availability of optional programs and kernel features.

#[cfg(feature = "emulation")]
mod kernel;

use std::env;
use std::fs;
use std::path::Path;

use gridhaul_report::TextTable;

use super::error::CommandError;
use super::program;
use crate::terminal::print_tables;

/// An optional program or kernel feature.
struct Feature {
    name: &'static str,
    available: bool,
    /// The part of gridhaul that needs it.
    used_by: &'static str,
    /// How to install or enable it.
    remedy: String,
}

impl Feature {
    fn new(
        name: &'static str,
        available: bool,
        used_by: &'static str,
        remedy: impl Into<String>,
    ) -> Self {
        Self { name, available, used_by, remedy: remedy.into() }
    }

    fn state(&self) -> &'static str {
        if self.available { "ok" } else { "missing" }
    }
}

/// Prints one line for each feature: availability, use, and how to install it. What users need
/// precedes what only the developers of gridhaul need.
pub(crate) fn run() -> Result<(), CommandError> {
    let mut own = table("Features of gridhaul", &of_users());
    own.note = Some(
        "The simulator and the analytical model (`--on sim,model`) need none of these.".into(),
    );
    Ok(print_tables(&[own, table("For the development of gridhaul", &of_developers())])?)
}

/// Each right and feature of the kernel, and whether this machine has it.
pub(crate) fn kernel_support() -> Vec<(&'static str, String)> {
    #[cfg(feature = "emulation")]
    let features = kernel::features();
    #[cfg(not(feature = "emulation"))]
    let features = Vec::<Feature>::new();
    features.into_iter().map(|feature| (feature.name, feature.state().to_owned())).collect()
}

fn table(title: &str, features: &[Feature]) -> TextTable {
    let row = |feature: &Feature| {
        let remedy = if feature.available { "" } else { &feature.remedy };
        [feature.state(), feature.name, feature.used_by, remedy].map(String::from).to_vec()
    };
    TextTable {
        title: title.to_owned(),
        headers: ["", "feature", "used by", "how to install"].map(String::from).to_vec(),
        rows: features.iter().map(row).collect(),
        key_columns: 4,
        ..TextTable::default()
    }
}

fn of_users() -> Vec<Feature> {
    let mut features = Vec::new();
    #[cfg(feature = "emulation")]
    features.extend(kernel::features());
    #[cfg(not(feature = "emulation"))]
    features.push(Feature::new(
        "emulator",
        false,
        "backend emu, `gridhaul cc`",
        "cargo build --release --features emulation",
    ));
    let program = |name, used_by| {
        Feature::new(name, program::is_installed(name), used_by, program::build_command_of(name))
    };
    features.push(program("gridhaul-relay", "`gridhaul relay`, aggregators on backend emu"));
    features.push(program("gridhaul-measure", "`gridhaul measure`, `gridhaul paper reserve`"));
    // Without the program, its brokers are of no use.
    if program::is_installed("gridhaul-measure") {
        features.extend(brokers());
    }
    features
}

fn brokers() -> [Feature; 3] {
    [
        Feature::new(
            "mosquitto",
            // Debian installs it in a folder that is not in the PATH of users.
            is_program("mosquitto") || Path::new("/usr/sbin/mosquitto").is_file(),
            "`gridhaul measure`: MQTT",
            package("mosquitto"),
        ),
        Feature::new(
            "RabbitMQ",
            Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").is_file(),
            "`gridhaul measure`: AMQP 0-9-1 and 1.0",
            package("rabbitmq-server"),
        ),
        Feature::new(
            "prosody",
            is_program("prosody"),
            "`gridhaul measure`: XMPP",
            package("prosody"),
        ),
    ]
}

fn of_developers() -> Vec<Feature> {
    #[cfg_attr(not(feature = "emulation"), expect(unused_mut, reason = "root is a Linux right"))]
    let mut features = vec![
        Feature::new(
            "ns-2 (`ns`)",
            is_program("ns"),
            "conformance tests, benchmarks",
            package("ns2"),
        ),
        Feature::new("ns-3", has_ns3(), "benchmarks", package("libns3-dev")),
        Feature::new("tshark", is_program("tshark"), "tests of pcapng files", package("tshark")),
        Feature::new("bpftool", is_program("bpftool"), "tests of killed runs", package("bpftool")),
    ];
    #[cfg(feature = "emulation")]
    features.push(kernel::root());
    features
}

/// How to install a package of Debian. Other distributions may have other names for it.
fn package(name: &str) -> String {
    match Path::new("/usr/bin/apt-get").is_file() {
        true => format!("apt-get install {name}"),
        false => format!("install the package {name} (its name in Debian)"),
    }
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
