//! Programs other than Rust that the tests use.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

use crate::process::{in_ci, installed, program, run};

/// A program and its Debian package.
pub(super) struct Tool {
    program: &'static str,
    package: &'static str,
    used_for: &'static str,
    /// Arguments with which the program must succeed, if its presence is not sufficient.
    works: &'static [&'static str],
}

const TOOLS: [Tool; 12] = [
    Tool { program: "ns", package: "ns2", used_for: "the comparison with ns-2", works: &[] },
    Tool {
        program: "tshark",
        package: "tshark",
        used_for: "the check of pcapng files",
        works: &[],
    },
    Tool {
        program: "clang",
        package: "clang",
        used_for: "the check of the programs for the kernel",
        works: &["-target", "bpf", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"],
    },
    Tool {
        program: "ip",
        package: "iproute2",
        used_for: "the network namespaces of the tests on the kernel",
        works: &[],
    },
    Tool {
        program: "bpftool",
        package: "bpftool",
        used_for: "the search for kernel objects that a killed run has left",
        works: &["version"],
    },
    Tool {
        program: "ping",
        package: "iputils-ping",
        used_for: "programs on an emulated network",
        works: &[],
    },
    Tool {
        program: "mosquitto",
        package: "mosquitto",
        used_for: "measurements of MQTT",
        works: &[],
    },
    Tool {
        // The program in the PATH needs the user of Debian's package; the tests start the one in
        // /usr/lib.
        program: "rabbitmq-server",
        package: "rabbitmq-server",
        used_for: "measurements of AMQP",
        works: &[],
    },
    Tool { program: "prosody", package: "prosody", used_for: "measurements of XMPP", works: &[] },
    Tool {
        program: "nft",
        package: "nftables",
        used_for: "the test of the transparent proxy",
        works: &[],
    },
    PYTHON,
    VALGRIND,
];

/// Python with `venv`, which is a separate package in Debian, and with `tomllib` (Python 3.11 or
/// later).
pub(super) const PYTHON: Tool = Tool {
    program: "python3",
    package: "python3-venv",
    used_for: "the Petri net of paper medx (3.11 or later, with venv)",
    works: &["-c", "import ensurepip, tomllib, venv"],
};

/// The counter of instructions.
pub(super) const VALGRIND: Tool = Tool {
    program: "valgrind",
    package: "valgrind",
    used_for: "the instructions of the simulator",
    works: &[],
};

impl Tool {
    /// Whether the program is installed and works.
    pub(super) fn is_usable(&self) -> bool {
        let works = || program(self.program).args(self.works).output();
        installed(self.program)
            && (self.works.is_empty() || works().is_ok_and(|output| output.status.success()))
    }

    /// Prints what is skipped without the program. In CI a missing program is an error.
    pub(super) fn report_missing(&self) -> anyhow::Result<()> {
        let Self { program, package, used_for, .. } = self;
        ensure!(!in_ci(), "{program} is missing; CI needs it for {used_for} (package {package})");
        println!(
            "{program}: not installed; skipping {used_for}; install the Debian package {package}"
        );
        Ok(())
    }
}

/// Installs missing programs if possible. In CI all must be installed afterwards; elsewhere the
/// tests that need a missing program are skipped with a message.
pub(crate) fn provide() -> anyhow::Result<()> {
    let (present, missing): (Vec<_>, Vec<_>) = TOOLS.iter().partition(|tool| tool.is_usable());
    for tool in present {
        println!("{}: installed", tool.program);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    let packages = packages.join(" ");
    if root_user() && installed("apt-get") {
        println!(
            "installing with apt-get: {packages}\n\
             The brokers among them are services of this machine; they are not started. The tests \
             start brokers of their own."
        );
        install(&packages)?;
    }
    for tool in missing.iter().filter(|tool| !tool.is_usable()) {
        tool.report_missing()?;
    }
    Ok(())
}

fn install(packages: &str) -> anyhow::Result<()> {
    let _no_services = NoServices::begin(Path::new("/usr/sbin/policy-rc.d"))?;
    let apt = |arguments: &[&str]| {
        run(program("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // An outdated package list is the most frequent cause of a failure.
    let _ = apt(&["update", "-qq"]);
    let arguments = ["install", "-y", "-qq", "--no-install-recommends"];
    let all: Vec<_> = arguments.into_iter().chain(packages.split(' ')).collect();
    match apt(&all) {
        Err(error) if in_ci() => bail!(error),
        Err(error) => println!("{error}"),
        Ok(()) => {}
    }
    Ok(())
}

/// While this value exists, packages do not start their services: `invoke-rc.d` obeys the exit code
/// of `policy-rc.d`, of which 101 forbids the action. An earlier policy is restored afterwards.
struct NoServices {
    policy: PathBuf,
    saved: PathBuf,
}

impl NoServices {
    fn begin(policy: &Path) -> anyhow::Result<Self> {
        let own =
            Self { policy: policy.to_owned(), saved: policy.with_extension("before-gridhaul") };
        // A policy that an interrupted installation has saved is the earlier one.
        if policy.exists() && !own.saved.exists() {
            fs::rename(policy, &own.saved)?;
        }
        fs::write(policy, "#!/bin/sh\nexit 101\n")?;
        fs::set_permissions(policy, Permissions::from_mode(0o755))?;
        Ok(own)
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        let restored = match self.saved.exists() {
            true => fs::rename(&self.saved, &self.policy),
            false => fs::remove_file(&self.policy),
        };
        if let Err(error) = restored {
            println!("{} could not be restored: {error}", self.policy.display());
        }
    }
}

fn root_user() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|uid| uid.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_forbidden_during_an_installation_and_the_earlier_policy_returns() {
        let folder = std::env::temp_dir().join(format!("gridhaul-policy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let policy = folder.join("policy-rc.d");
        // Not executed directly: programs that other tests start have the file open for writing
        // until they begin (ETXTBSY of execve(2)).
        let status = |policy: &Path| {
            assert_eq!(fs::metadata(policy).unwrap().permissions().mode() & 0o777, 0o755);
            program("sh").arg(policy).status().unwrap().code()
        };
        {
            let _no_services = NoServices::begin(&policy).unwrap();
            assert_eq!(status(&policy), Some(101));
        }
        assert!(!policy.exists());
        fs::write(&policy, "#!/bin/sh\nexit 7\n").unwrap();
        fs::set_permissions(&policy, Permissions::from_mode(0o755)).unwrap();
        {
            let _no_services = NoServices::begin(&policy).unwrap();
            assert_eq!(status(&policy), Some(101));
        }
        assert_eq!(status(&policy), Some(7));
        fs::remove_dir_all(&folder).unwrap();
    }
}
