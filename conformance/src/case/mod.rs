//! A case: what is set up, what is done, what must be seen.

mod expect;
mod fate;
mod script;

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Direction, Stack};
use gridhaul_scenario::units::Duration;
use serde::Deserialize;

pub use expect::{Expect, Range, Row, WindowRow};
pub use fate::{Fate, Fates};
pub use script::{Action, Crafted, Step};

/// One end of the connection under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The one that opens; the one under test where the peer is a script.
    Client,
    /// The other.
    Server,
}

/// How the connection comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Open {
    /// The client opens at time 0.
    #[default]
    Client,
    /// Both ends open at time 0.
    Both,
    /// The end under test waits for the script to open.
    Listen,
    /// It exists from the start, without handshake.
    Established,
}

/// What is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// A whole stack, over the path.
    #[default]
    Stack,
    /// Segments of the input, crafted by hand and handed over without a path.
    Script,
}

/// The way between the ends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Links from the client to the server; fates befall in front of the last.
    pub forward: Vec<Direction>,
    /// Links back; as forward, where it says nothing.
    #[serde(default)]
    pub reverse: Vec<Direction>,
}

/// A case as it stands in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// `<topic>/<case>`, from the path of the file.
    #[serde(skip)]
    pub name: String,
    /// One sentence.
    pub title: String,
    /// RFC and section, or paper and section.
    pub source: String,
    /// What it says there, in its words or in short.
    pub says: String,
    /// The arms that run it: `sim`, `kernel`.
    pub arms: Vec<String>,
    /// Why no kernel can run it, where `arms` leaves it out.
    pub not_kernel: Option<String>,
    /// The variants to run it with, in place of that of its stacks.
    #[serde(default)]
    pub variants: Vec<CongestionControlAlgorithm>,
    /// Reason why it cannot pass yet.
    pub ignore: Option<String>,
    /// Decision by which what is expected differs from the sentence quoted.
    pub deviation: Option<String>,
    /// How long it runs.
    pub until: Duration,
    /// How the connection comes to be.
    #[serde(default)]
    pub open: Open,
    /// What is at the other end.
    #[serde(default)]
    pub peer: Peer,
    /// Initial sequence numbers of client and server.
    #[serde(default = "initial_sequence_numbers")]
    pub isn: [u32; 2],
    /// What the ends do, one action a line.
    #[serde(default)]
    pub input: String,
    /// What befalls single packets, one rule a line.
    #[serde(default)]
    pub fate: String,
    /// The way between the ends.
    pub path: Option<Path>,
    /// Stack of both ends, as a scenario writes it.
    #[serde(default)]
    pub stack: Stack,
    /// Stack of the server, where it differs.
    pub server: Option<Stack>,
    /// What must be seen.
    pub expect: Expect,
    /// What is otherwise on the kernel.
    pub kernel: Option<OnKernel>,
}

/// What is otherwise on the kernel.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnKernel {
    /// Why, and where that is written.
    pub deviation: String,
    /// How long it runs there.
    pub until: Option<Duration>,
    /// What the ends do there.
    pub input: Option<String>,
    /// What must be seen there.
    pub expect: Option<Expect>,
}

const fn initial_sequence_numbers() -> [u32; 2] {
    [1_000_000, 70_000]
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut case: Self = toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
        case.name = name.to_owned();
        case.steps()?;
        case.fates()?;
        case.expect.check().map_err(|error| format!("{name}: {error}"))?;
        case.check_kernel().map_err(|error| format!("{name}: {error}"))?;
        Ok(case)
    }

    /// Whether it names this arm.
    #[must_use]
    pub fn runs_on(&self, arm: &str) -> bool {
        self.arms.iter().any(|named| named == arm)
    }

    /// A case says what it is on the kernel, or why it is nothing there.
    fn check_kernel(&self) -> Result<(), String> {
        let runs = self.runs_on("kernel");
        if let Some(unknown) =
            self.arms.iter().find(|arm| !["sim", "kernel"].contains(&arm.as_str()))
        {
            return Err(format!("no arm is called `{unknown}`; known: sim, kernel"));
        }
        match (&self.not_kernel, &self.kernel) {
            (Some(_), _) if runs => Err("`not_kernel` in a case that runs there".to_owned()),
            (None, _) if !runs => {
                Err("add \"kernel\" to `arms`, or `not_kernel` with the reason".to_owned())
            }
            (_, Some(_)) if !runs => Err("`kernel` in a case that does not run there".to_owned()),
            (Some(reason), _) if reason.trim().is_empty() => {
                Err("`not_kernel` needs a reason".to_owned())
            }
            (_, Some(kernel)) if kernel.deviation.trim().is_empty() => {
                Err("`kernel.deviation` needs a reason".to_owned())
            }
            (_, Some(kernel)) => {
                self.on_kernel().steps()?;
                kernel.expect.as_ref().map_or(Ok(()), Expect::check)
            }
            _ => Ok(()),
        }
    }

    /// The stack of the server: that of the client, unless the case has another one.
    #[must_use]
    pub fn server_stack(&self) -> &Stack {
        self.server.as_ref().unwrap_or(&self.stack)
    }

    /// The case as it is on the kernel.
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

    /// The case with each of its variants, and their names; with the one of its stacks where it
    /// names none.
    #[must_use]
    pub fn each_variant(&self) -> Vec<(String, Self)> {
        if self.variants.is_empty() {
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
        self.variants.iter().map(with).collect()
    }

    /// The input, in order of time.
    ///
    /// # Errors
    /// The line that makes no sense.
    pub fn steps(&self) -> Result<Vec<Step>, String> {
        let mss = self.stack.mss.map_or(1460, |mss| mss.get());
        script::parse(&self.input, mss).map_err(|error| format!("{}: {error}", self.name))
    }

    /// What befalls single packets.
    ///
    /// # Errors
    /// The line that makes no sense.
    pub fn fates(&self) -> Result<Fates, String> {
        Fates::parse(&self.fate).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// Every case below a folder, in order of its name.
///
/// # Errors
/// The file that is not a case, and why.
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
