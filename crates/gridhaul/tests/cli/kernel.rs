//! `gridhaul cc` on this machine's kernel, as root, and every command of its guide.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::documents::commands;
use crate::support::{Desk, Done, has_all, repository, words};

const GUIDE: &str = "docs/guides/kernel-congestion-control.md";

/// Whether [`the_commands_of_the_guide_work`] runs this line.
pub(crate) fn runs(file: &Path, line: &str) -> bool {
    file == repository().join(GUIDE) && (line.starts_with("gridhaul cc ") || in_network(line))
}

/// Whether a command changes the network of the machine; the test runs such commands in a
/// namespace.
fn in_network(line: &str) -> bool {
    ["ip ", "sysctl ", "ss "].iter().any(|start| line.starts_with(start))
}

/// The names of loaded algorithms are machine-wide, so tests that load one run in sequence. `None`:
/// this machine cannot run these tests, which is an error in CI.
fn permit() -> Option<Permit> {
    let missing = gridhaul_cc::missing_requirements();
    let missing: Vec<_> = missing
        .iter()
        .map(|requirement| format!("{} ({})", requirement.what, requirement.remedy))
        .collect();
    has_all(&missing).then(|| Permit { _alone: gridhaul_cc::acquire_lock().unwrap() })
}

/// Exclusive use of the algorithms; unloads them on drop, also after a failed test.
struct Permit {
    _alone: File,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let _ = gridhaul_cc::unload(&gridhaul_cc::Algorithm::ALL);
    }
}

#[test]
fn the_commands_of_the_guide_work() {
    let Some(_permit) = permit() else { return };
    let desk = Desk::new();
    let namespace = Namespace(format!("ghcli{}", std::process::id()));
    let space = &namespace.0;
    // The addresses of the guide: an aggregator with an upstream link.
    ip(&format!("netns add {space}"));
    ip(&format!("-n {space} link add name up type veth peer name down"));
    ip(&format!("-n {space} address add 192.0.2.2/24 dev up"));
    ip(&format!("-n {space} link set dev up up"));
    ip(&format!("-n {space} link set dev down up"));
    ip(&format!("-n {space} route add 198.51.100.0/24 via 192.0.2.1"));
    let mut run = 0;
    for line in commands(&fs::read_to_string(repository().join(GUIDE)).unwrap()) {
        let (code, err) = if in_network(&line) {
            let mut command = Command::new("ip");
            let output =
                command.args(["netns", "exec", space]).args(words(&line)).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        } else if let Some(arguments) = line.strip_prefix("gridhaul ") {
            let Done { code, err, .. } = desk.run(arguments);
            (code, err)
        } else {
            continue;
        };
        assert_eq!(code, Some(0), "{line}\n{err}");
        run += 1;
    }
    drop(namespace);
    assert!(run >= 8, "{run}");
    assert_nothing_is_left(&desk);
}

/// A network namespace that is removed on drop: its default setting would keep an algorithm in use.
struct Namespace(String);

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

fn ip(line: &str) {
    let output = Command::new("ip").args(words(line)).output().unwrap();
    assert!(output.status.success(), "ip {line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_second_load_is_refused_and_names_the_first() {
    let Some(_permit) = permit() else { return };
    let desk = Desk::new();
    assert_eq!(desk.run("cc load vegas").code, Some(0));
    let again = desk.run("cc load vegas");
    let list = desk.run("cc list").out;
    let unloaded = desk.run("cc unload vegas");
    assert_eq!(again.code, Some(2));
    assert_eq!(
        again.err,
        "error: gh_vegas is already loaded, and pinned: run `gridhaul cc unload` first\n"
    );
    assert!(list.contains("gh_vegas  loaded until `gridhaul cc unload`"), "{list}");
    assert_eq!((unloaded.code, unloaded.out.as_str()), (Some(0), "unloaded: gh_vegas\n"));
    assert_nothing_is_left(&desk);
}

#[test]
fn status_lists_the_parameters() {
    let Some(_permit) = permit() else { return };
    let desk = Desk::new();
    let line = "cc load --vegas-alpha 2 --vegas-beta 4 --medx-alpha 0.875 --medx-buffer 8";
    assert_eq!(desk.run(line).code, Some(0));
    let status = desk.run("cc status").out;
    let rows: Vec<_> = status.lines().map(|row| words(row).join(" ")).collect();
    for row in ["alpha, segments 2", "beta, segments 4", "alpha 0.875", "delays in the list 8"] {
        assert!(rows.iter().any(|found| found == row), "{row}: {status}");
    }
    assert_eq!(desk.run("cc unload").code, Some(0));
    assert_nothing_is_left(&desk);
}

#[test]
fn a_killed_load_with_hold_leaves_no_algorithm() {
    let Some(_permit) = permit() else { return };
    let desk = Desk::new();
    let mut holder = desk.command("cc load --hold").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "loaded until Ctrl-C: gh_vegas, gh_medx\n");
    let status = desk.run("cc list").out;
    let expected = format!("loaded by process {} (gridhaul)", holder.id());
    assert_eq!(status.matches(&expected).count(), 2, "{status}");
    // SIGKILL.
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_nothing_is_left(&desk);
}

#[test]
fn invalid_parameters_are_rejected() {
    let Some(_permit) = permit() else { return };
    let done = Desk::new().run("cc load vegas --vegas-alpha 4");
    let expected = "error: alpha (4) of Vegas is above beta (3): expected alpha <= beta\n";
    assert_eq!((done.code, done.err.as_str()), (Some(2), expected));
    let done = Desk::new().run("cc load vegas --vegas-alpha -1");
    assert!(done.err.starts_with("error: invalid value '-1' for '--vegas-alpha"), "{}", done.err);
}

#[test]
fn options_of_algorithms_that_are_not_loaded_are_rejected() {
    let Some(_permit) = permit() else { return };
    let desk = Desk::new();
    let cases = [
        ("vegas --cgroup /nonexistent --medx-alpha 0.3", "--medx-alpha, --cgroup: option of medx"),
        ("vegas --medx-alpha 0.5", "--medx-alpha: option of medx"),
        ("medx --vegas-alpha 50 --vegas-beta 3", "--vegas-alpha, --vegas-beta: option of vegas"),
    ];
    for (line, named) in cases {
        let done = desk.run(&format!("cc load {line}"));
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(done.err.starts_with(&format!("error: {named}, which")), "{}", done.err);
        assert!(done.err.contains("help: remove the option"), "the remedy: {}", done.err);
    }
    assert_nothing_is_left(&desk);
}

/// The message lists the missing privileges.
#[test]
fn without_root_the_permissions_are_named() {
    let Some(_permit) = permit() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_gridhaul"));
    // Other users may not be able to read the folder of the build.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(place.path(), open).unwrap();
    let copy = place.path().join("gridhaul");
    gridhaul_testing::copy_program(program, &copy);
    let refused = |words: [&str; 2]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        let output = command.arg(&copy).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        let named = "permission (CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF): run as root";
        assert!(said.contains(named), "{words:?}: {said}");
    };
    refused(["cc", "load"]);
    // An unprivileged `unload` cannot read the pinned programs; it must report this instead of
    // finding none.
    let desk = Desk::new();
    assert_eq!(desk.run("cc load vegas").code, Some(0));
    refused(["cc", "unload"]);
    assert_eq!(desk.run("cc unload").out, "unloaded: gh_vegas\n");
}

/// Simulates a kernel that was built without type information.
#[test]
fn without_type_information_the_error_names_the_kernel_option() {
    let Some(_permit) = permit() else { return };
    let hidden = format!(
        "mount -t tmpfs none /sys/kernel/btf && exec {} cc load",
        env!("CARGO_BIN_EXE_gridhaul")
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &hidden]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/sys/kernel/btf/vmlinux"), "{said}");
    assert!(said.contains("CONFIG_DEBUG_INFO_BTF=y"), "the remedy: {said}");
    assert_nothing_is_left(&Desk::new());
}

/// The kernel frees unused objects with a delay.
#[expect(clippy::disallowed_methods, reason = "waits for the kernel")]
fn assert_nothing_is_left(desk: &Desk) {
    let mut status = String::new();
    for _ in 0..1_000 {
        status = desk.run("cc status").out;
        if status == "no algorithm is loaded\n" {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(status, "no algorithm is loaded\n");
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    // Concurrent emulations use names with a suffix.
    let ours = |name: &str| ["gh_vegas", "gh_medx"].contains(&name);
    assert!(!names.split_whitespace().any(ours), "{names}");
    assert!(!Path::new("/sys/fs/bpf/gridhaul").exists());
}
