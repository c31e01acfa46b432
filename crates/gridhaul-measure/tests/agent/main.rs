//! Runs on two machines: the program as users run it, on the loopback device, and between two
//! network namespaces.

mod namespaces;
mod refusals;
mod runs;
mod two_ends;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{thread, time};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_gridhaul-measure");

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A running agent, and a folder for the controller.
struct Agent {
    process: Child,
    /// Arguments that the agent printed for its controller.
    arguments: String,
    desk: TempDir,
}

impl Agent {
    fn start() -> Self {
        Self::listening(Ipv4Addr::LOCALHOST.into())
    }

    /// An agent at an address of this machine, at a free port.
    fn listening(address: IpAddr) -> Self {
        Self::with_arguments(address, &[])
    }

    /// An agent that receives frames at an interface of this machine.
    fn with_interface(device: &str) -> Self {
        Self::with_arguments(Ipv4Addr::LOCALHOST.into(), &["--interface", device])
    }

    fn with_arguments(address: IpAddr, arguments: &[&str]) -> Self {
        let desk = tempfile::tempdir().unwrap();
        fs::write(desk.path().join("token"), TOKEN).unwrap();
        fs::set_permissions(desk.path().join("token"), Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["agent", "--listen", &SocketAddr::new(address, 0).to_string()]);
        command.args(arguments);
        let log = fs::File::create(desk.path().join("agent.log")).unwrap();
        command.env("GRIDHAUL_AGENT_TOKEN", TOKEN).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().unwrap();
        let mut arguments = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut arguments).unwrap();
        Self { process, arguments: arguments.trim().to_owned(), desk }
    }

    /// A controller with these arguments before those of the agent.
    fn controller(&self, arguments: &str) -> Command {
        let mut program = Command::new(PROGRAM);
        program.args(arguments.split(' ')).args(self.arguments.split(' '));
        // A search measures no floor.
        let floor = (!arguments.starts_with("rate")).then_some("--no-floor");
        program.args(floor).arg("-q").current_dir(self.desk.path());
        program
    }

    /// Lines of the agent about its connections.
    fn log(&self) -> String {
        fs::read_to_string(self.desk.path().join("agent.log")).unwrap()
    }

    fn run(&self, arguments: &str) -> Output {
        self.controller(arguments).args(["--token-file", "token"]).output().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The turn of a test that measures: runs at the same time would delay each other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a program has created a folder.
#[expect(clippy::disallowed_methods, reason = "a program is awaited in real time")]
fn await_folder(path: &Path) {
    let begin = time::Instant::now();
    while !path.is_dir() {
        assert!(begin.elapsed().as_secs() < 60, "{} is not created", path.display());
        thread::sleep(time::Duration::from_millis(20));
    }
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
