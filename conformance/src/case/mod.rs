//! A test case: its configuration, its input, and the expected observation.

mod expect;
mod packet_impairment;
mod script;

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Direction, Stack};
use gridhaul_scenario::units::Duration;
use serde::Deserialize;

pub use expect::{EventRow, Expectation, Range, WindowRow};
pub use packet_impairment::{PacketImpairment, PacketImpairments};
pub use script::{Action, InputEvent, ScriptedSegment};

/// A host of the connection under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// The active opener, or the host under test if the peer is a script.
    Client,
    /// The other host.
    Server,
}

/// How the connection is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenMode {
    /// The client opens the connection at time 0.
    #[default]
    Client,
    /// Both hosts open the connection at time 0 (simultaneous open).
    Both,
    /// The host under test listens; the script opens the connection.
    Listen,
    /// The connection is established at the start, without a handshake.
    Established,
}

/// The remote host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// A TCP stack, reached over the path.
    #[default]
    Stack,
    /// A script: the segments of the input, delivered without a path.
    Script,
}

/// The path between the hosts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPath {
    /// Links from the client to the server; impairments apply before the last one.
    pub forward: Vec<Direction>,
    /// Links from the server to the client; by default, those of `forward`.
    #[serde(default)]
    pub reverse: Vec<Direction>,
}

/// A test case, as parsed from its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// `<topic>/<case>`, from the path of the file.
    #[serde(skip)]
    pub name: String,
    /// The tested behaviour in one sentence.
    pub title: String,
    /// RFC and section, or paper and section.
    pub source: String,
    /// The requirement, quoted or summarised.
    pub requirement: String,
    /// The backends that run the case: `sim`, `kernel`.
    pub backends: Vec<String>,
    /// Reason why the case does not run on the kernel, if `backends` does not contain it.
    pub not_kernel: Option<String>,
    /// Congestion control algorithms to run the case with, instead of that of the stacks.
    #[serde(default)]
    pub congestion_control: Vec<CongestionControlAlgorithm>,
    /// Reason why the case cannot pass yet.
    pub ignore: Option<String>,
    /// Reason of an intended difference from the requirement.
    pub deviation: Option<String>,
    /// Duration of the run.
    pub until: Duration,
    /// How the connection is opened.
    #[serde(default)]
    pub open: OpenMode,
    /// The remote host.
    #[serde(default)]
    pub peer: Peer,
    /// Initial sequence numbers of client and server.
    #[serde(default = "initial_sequence_numbers")]
    pub isn: [u32; 2],
    /// Actions of the hosts, one per line.
    #[serde(default)]
    pub input: String,
    /// Impairments of single packets, one rule per line.
    #[serde(default)]
    pub impairments: String,
    /// The path between the hosts.
    pub path: Option<NetworkPath>,
    /// Stack of both hosts, with the keys of a scenario.
    #[serde(default)]
    pub stack: Stack,
    /// Stack of the server, if it differs.
    pub server: Option<Stack>,
    /// The expected observation.
    pub expect: Expectation,
    /// Differences of the case on the kernel.
    pub kernel: Option<KernelOverrides>,
}

/// Differences of a case on the kernel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelOverrides {
    /// Reason of the difference, with its source.
    pub deviation: String,
    /// Duration of the run on the kernel.
    pub until: Option<Duration>,
    /// Input on the kernel.
    pub input: Option<String>,
    /// The expected observation on the kernel.
    pub expect: Option<Expectation>,
}

const fn initial_sequence_numbers() -> [u32; 2] {
    [1_000_000, 70_000]
}

impl Case {
    /// Parses a case.
    ///
    /// # Errors
    /// The key or line that is not valid, and the reason.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut case: Self = toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
        case.name = name.to_owned();
        case.steps()?;
        case.impairments()?;
        case.expect.check().map_err(|error| format!("{name}: {error}"))?;
        case.check_kernel().map_err(|error| format!("{name}: {error}"))?;
        Ok(case)
    }

    /// Whether the case runs on this backend.
    #[must_use]
    pub fn runs_on(&self, backend: &str) -> bool {
        self.backends.iter().any(|named| named == backend)
    }

    /// Checks that a case runs on the kernel, or states why it does not.
    fn check_kernel(&self) -> Result<(), String> {
        let runs = self.runs_on("kernel");
        if let Some(unknown) =
            self.backends.iter().find(|name| !["sim", "kernel"].contains(&name.as_str()))
        {
            return Err(format!("unknown backend `{unknown}`; expected `sim` or `kernel`"));
        }
        match (&self.not_kernel, &self.kernel) {
            (Some(_), _) if runs => {
                Err("`not_kernel` is set, but `backends` contains \"kernel\"".to_owned())
            }
            (None, _) if !runs => {
                Err("add \"kernel\" to `backends`, or `not_kernel` with the reason".to_owned())
            }
            (_, Some(_)) if !runs => {
                Err("`kernel` is set, but `backends` does not contain \"kernel\"".to_owned())
            }
            (Some(reason), _) if reason.trim().is_empty() => {
                Err("`not_kernel` needs a reason".to_owned())
            }
            (_, Some(kernel)) if kernel.deviation.trim().is_empty() => {
                Err("`kernel.deviation` needs a reason".to_owned())
            }
            (_, Some(kernel)) => {
                self.on_kernel().steps()?;
                kernel.expect.as_ref().map_or(Ok(()), Expectation::check)
            }
            _ => Ok(()),
        }
    }

    /// The stack of the server: by default, that of the client.
    #[must_use]
    pub fn server_stack(&self) -> &Stack {
        self.server.as_ref().unwrap_or(&self.stack)
    }

    /// The case with its differences on the kernel applied.
    #[must_use]
    pub fn on_kernel(&self) -> Self {
        let mut case = self.clone();
        if let Some(kernel) = &self.kernel {
            case.until = kernel.until.unwrap_or(case.until);
            case.input = kernel.input.clone().unwrap_or(case.input);
            case.expect = kernel.expect.clone().unwrap_or(case.expect);
        }
        case
    }

    /// The case with each congestion control algorithm that it lists, and the name of the
    /// algorithm. If the case lists none, its stacks stay unchanged and the name is empty.
    #[must_use]
    pub fn with_each_algorithm(&self) -> Vec<(String, Self)> {
        if self.congestion_control.is_empty() {
            return vec![(String::new(), self.clone())];
        }
        let with = |&congestion_control: &CongestionControlAlgorithm| {
            let mut case = self.clone();
            case.stack.congestion_control = Some(congestion_control);
            if let Some(server) = &mut case.server {
                server.congestion_control = Some(congestion_control);
            }
            (congestion_control.name().to_owned(), case)
        };
        self.congestion_control.iter().map(with).collect()
    }

    /// The actions of the input, in order of time.
    ///
    /// # Errors
    /// A line that cannot be parsed.
    pub fn steps(&self) -> Result<Vec<InputEvent>, String> {
        let mss = self.stack.mss.map_or(1460, |mss| mss.get());
        script::parse(&self.input, mss).map_err(|error| format!("{}: {error}", self.name))
    }

    /// The impairment rules of single packets.
    ///
    /// # Errors
    /// A line that cannot be parsed.
    pub fn impairments(&self) -> Result<PacketImpairments, String> {
        PacketImpairments::parse(&self.impairments)
            .map_err(|error| format!("{}: {error}", self.name))
    }
}

/// All cases below a folder, in order of their names.
///
/// # Errors
/// A file that is not a valid case, and the reason.
pub fn load_all(folder: &FilePath) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for topic in entries(folder)? {
        if topic.is_dir() {
            for file in entries(&topic)? {
                cases.push(load(folder, &file)?);
            }
        }
    }
    Ok(cases)
}

fn load(folder: &FilePath, file: &FilePath) -> Result<Case, String> {
    let name = file.strip_prefix(folder).unwrap_or(file).with_extension("");
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Case::parse(&name.display().to_string().replace('\\', "/"), &text)
}

fn entries(folder: &FilePath) -> Result<Vec<PathBuf>, String> {
    let read = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// The folder of the cases of this crate.
#[must_use]
pub fn folder() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}
