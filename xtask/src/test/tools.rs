//! Programs that the tests use beside Rust.

use anyhow::{bail, ensure};

use crate::shell::{in_ci, installed, program, run};

/// A program and the Debian package that has it.
pub(super) struct Tool {
    program: &'static str,
    package: &'static str,
    used_for: &'static str,
    /// Arguments with which it must succeed, where being there is not enough.
    works: &'static [&'static str],
}

const TOOLS: [Tool; 7] = [
    Tool { program: "ns", package: "ns2", used_for: "the comparison with ns-2", works: &[] },
    Tool { program: "tshark", package: "tshark", used_for: "reading the pcapng files", works: &[] },
    Tool {
        program: "clang",
        package: "clang",
        used_for: "the congestion control for the kernel",
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
        used_for: "looking for what a killed run leaves in the kernel",
        works: &["version"],
    },
    Tool {
        program: "ping",
        package: "iputils-ping",
        used_for: "programs on an emulated network",
        works: &[],
    },
    PYTHON,
];

/// Python with what makes an environment (a package of its own in Debian), and not older than 3.11,
/// which brought `tomllib`.
pub(super) const PYTHON: Tool = Tool {
    program: "python3",
    package: "python3-venv",
    used_for: "the Petri net of paper medx (3.11 or later, with venv)",
    works: &["-c", "import ensurepip, tomllib, venv"],
};

impl Tool {
    /// Whether it can be used.
    pub(super) fn is_there(&self) -> bool {
        let works = || program(self.program).args(self.works).output();
        installed(self.program)
            && (self.works.is_empty() || works().is_ok_and(|output| output.status.success()))
    }

    /// Says that what needs it is left out; in CI that is an error.
    pub(super) fn leave_out(&self) -> anyhow::Result<()> {
        let Self { program, package, used_for, .. } = self;
        ensure!(!in_ci(), "{program} is missing; CI needs it for {used_for} (package {package})");
        println!("{program}: missing, so {used_for} is left out; apt-get install {package}");
        Ok(())
    }
}

/// Installs what is missing where that is possible. In CI everything must be there afterwards;
/// elsewhere the tests that need it are left out and say so.
pub(crate) fn provide() -> anyhow::Result<()> {
    let (there, missing): (Vec<_>, Vec<_>) = TOOLS.iter().partition(|tool| tool.is_there());
    for tool in there {
        println!("{}: there", tool.program);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|tool| tool.package).collect();
    let packages = packages.join(" ");
    if root_user() && installed("apt-get") {
        println!("installing with apt-get: {packages}");
        install(&packages)?;
    }
    for tool in missing.iter().filter(|tool| !tool.is_there()) {
        tool.leave_out()?;
    }
    Ok(())
}

fn install(packages: &str) -> anyhow::Result<()> {
    let apt = |arguments: &[&str]| {
        run(program("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // A list of packages that is out of date is the commonest reason for a failure.
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

fn root_user() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|uid| uid.split_whitespace().nth(1)) == Some("0")
}
