//! Emulated networks: failures and the removal of their namespaces. The tests require
//! root; without root they report this and pass, but fail in CI.

mod rights;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::documents::commands;
use crate::support::{Desk, SMALL, has_all, repository, words};

/// Duration of a run that does not end while a busy machine looks for its namespaces and programs.
const LONGER_THAN_A_TEST: &str = "10 min";

/// Whether a test of this file runs this line of a document, or the machine cannot run it.
pub(crate) fn runs(line: &str) -> bool {
    let held = line.starts_with("gridhaul emu up") || line.starts_with("ip netns exec gh-");
    // It would remove the namespaces of the test of this command.
    let cleans = line.starts_with("gridhaul emu clean");
    held || cleans
        || line.contains("emu") && line.starts_with("gridhaul ") && !can_create_namespaces()
}

/// Whether this machine permits the creation of namespaces.
pub(crate) fn can_create_namespaces() -> bool {
    let root = succeeds("unshare", &["--net", "true"]) && Path::new("/dev/net/tun").exists();
    has_all(if root { &[] } else { &["root and /dev/net/tun"] })
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Waits for a condition.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, in real time")]
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The network namespaces that a process keeps open, by their numbers.
fn namespaces_of(process: u32) -> BTreeSet<String> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let names = targets.map(|target| target.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("net:[")).collect()
}

/// The given namespaces that still exist: held by a process or by a mounted name.
fn still_there(namespaces: &BTreeSet<String>) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    let mut held: BTreeSet<String> = numbers.flat_map(namespaces_of).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    held.extend(
        mounts.split_whitespace().filter(|mount| mount.starts_with("net:[")).map(String::from),
    );
    namespaces.intersection(&held).cloned().collect()
}

/// Starts `emu up` and waits until its network stands.
fn up(desk: &Desk, prefix: &str) -> Child {
    let mut command = desk.command(&format!("emu up small.toml --prefix {prefix}"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let name = format!("/run/netns/{prefix}-b");
    wait_for("the network stands", || {
        Path::new(&name).exists() && namespaces_of(child.id()).len() == 2
    });
    child
}

fn signal(child: &Child, name: &str) {
    assert!(succeeds("kill", &[name, &child.id().to_string()]));
}

fn names(prefix: &str) -> usize {
    let all = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)).count()
}

#[test]
fn a_killed_run_leaves_no_namespace() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL.replace("5 s", LONGER_THAN_A_TEST));
    let mut child =
        desk.command("run --on emu small.toml -q").stdout(Stdio::null()).spawn().unwrap();
    let mut namespaces = BTreeSet::new();
    wait_for("the run has its namespaces", || {
        namespaces = namespaces_of(child.id());
        namespaces.len() == 2
    });
    assert_eq!(still_there(&namespaces).len(), 2, "they are found while they are there");
    signal(&child, "-KILL");
    child.wait().unwrap();
    wait_for("they are gone", || still_there(&namespaces).is_empty());
    // The kernel has released the lock of the folder with its process.
    let left = desk.names("results");
    assert!(left.iter().all(|name| name == ".small.lock"), "{left:?}");
}

/// BPF objects that a process keeps open: `prog`, `map` or `link`, and the number.
fn bpf_of(process: u32) -> BTreeSet<(String, String)> {
    let files = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let kept = |line: &str| {
        let (kind, number) = line.split_once("_id:")?;
        ["prog", "map", "link"].contains(&kind).then(|| (kind.into(), number.trim().into()))
    };
    texts.flat_map(|text| text.lines().filter_map(kept).collect::<Vec<_>>()).collect()
}

/// Whether this machine can load the algorithms of gridhaul-cc and list BPF objects.
fn may_load() -> bool {
    let mut missing: Vec<_> = gridhaul_cc::missing_requirements()
        .iter()
        .map(|requirement| requirement.what.clone())
        .collect();
    if !succeeds("bpftool", &["version"]) {
        missing.push("bpftool".into());
    }
    has_all(&missing)
}

/// Whether the kernel has such an object.
fn is_loaded((kind, number): &(String, String)) -> bool {
    succeeds("bpftool", &[kind, "show", "id", number])
}

/// Links and queueing disciplines of the machine itself.
fn devices() -> String {
    let said = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{program}");
        String::from_utf8(output.stdout).unwrap()
    };
    said("ip", &["-brief", "link", "show"]) + &said("tc", &["qdisc", "show"])
}

#[test]
fn a_killed_run_leaves_no_device_no_discipline_and_no_program_in_the_kernel() {
    if !can_create_namespaces() || !may_load() {
        return;
    }
    let shaped = SMALL.replace("both = {", "both = { shaper.rate = \"500 kbit/s\",");
    let vegas = shaped + "stack = \"vegas\"\n[stack.vegas]\ncongestion_control = \"vegas\"\n";
    let desk = Desk::new().file("small.toml", vegas.replace("5 s", LONGER_THAN_A_TEST));
    let before = devices();
    let mut child =
        desk.command("run --on emu small.toml -q").stdout(Stdio::null()).spawn().unwrap();
    let (mut namespaces, mut objects) = (BTreeSet::new(), BTreeSet::new());
    wait_for("the run has its namespaces and programs", || {
        (namespaces, objects) = (namespaces_of(child.id()), bpf_of(child.id()));
        namespaces.len() == 2 && !objects.is_empty()
    });
    assert!(objects.iter().all(is_loaded), "they are found while they are there: {objects:?}");
    signal(&child, "-KILL");
    child.wait().unwrap();
    wait_for("they are gone", || {
        still_there(&namespaces).is_empty() && !objects.iter().any(is_loaded)
    });
    wait_for("the devices are those of before", || devices() == before);
}

#[test]
fn recordings_are_named_after_their_backend() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL.replace("5 s", "1 s"));
    let done = desk.run("run small.toml --on sim,emu --series '100 ms' --pcap wire --out r -q");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let names = desk.names("r");
    let of_sim =
        |name: &&String| [".parquet", ".pcapng"].iter().any(|ending| name.ends_with(ending));
    let (of_emu, of_sim): (Vec<_>, Vec<_>) =
        names.iter().filter(of_sim).partition(|name| name.contains("-emu."));
    assert_eq!(of_sim.len(), 5, "{names:?}");
    let named: Vec<_> = of_emu.iter().map(|name| name.replace("-emu.", ".")).collect();
    assert!(of_sim.iter().all(|name| named.contains(name)), "{names:?}");
}

#[test]
fn a_network_removes_its_namespaces_at_the_end() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL);
    let mut child = up(&desk, "ght1");
    let taken = desk.run("emu up small.toml --prefix ght1");
    assert_eq!(taken.code, Some(2));
    assert!(taken.err.contains("namespace ght1-a already"), "{}", taken.err);
    assert!(taken.err.contains("choose another prefix"), "the remedy: {}", taken.err);
    let routes = ["netns", "exec", "ght1-a", "ip", "route", "get", "10.1.0.1"];
    assert!(succeeds("ip", &routes), "a route exists");
    let namespaces = namespaces_of(child.id());
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(names("ght1"), 0);
    // The kernel gives their numbers to the namespaces of other tests.
    wait_for("they are gone", || still_there(&namespaces).is_empty());
}

#[test]
fn the_longest_prefix_is_named_and_works() {
    if !can_create_namespaces() {
        return;
    }
    let nodes = SMALL.replace("b = {}", "longer = {}").replace("to = \"b\"", "to = \"longer\"");
    let desk = Desk::new().file("small.toml", nodes);
    // 255 bytes, less those of `-longer`.
    let prefix = format!("ght6{}", "x".repeat(244));
    let done = desk.run(&format!("emu up small.toml --prefix {prefix}x"));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("the prefix and `-longer` are 256"), "{}", done.err);
    assert!(done.err.contains("choose a prefix of 1 to 248 characters"), "{}", done.err);
    assert_eq!(names("ght6"), 0);
    let mut command = desk.command(&format!("emu up small.toml --prefix {prefix}"));
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let name = format!("{prefix}-longer");
    wait_for("the network stands", || succeeds("ip", &["netns", "exec", &name, "true"]));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The name of a node alone may exceed the limit.
    let nodes = SMALL.replace("b = {}", &format!("{} = {{}}", "y".repeat(254)));
    let nodes = nodes.replace("to = \"b\"", &format!("to = \"{}\"", "y".repeat(254)));
    let done = desk.file("small.toml", nodes).run("emu up small.toml");
    assert!(done.err.contains("shorten the name of the node"), "{}", done.err);
}

#[test]
fn the_network_of_the_guide_serves_other_programs() {
    if !can_create_namespaces() {
        return;
    }
    let guide = fs::read_to_string(repository().join("docs/guides/real-kernels.md")).unwrap();
    let lines = commands(&guide);
    let line = lines.iter().find_map(|line| line.strip_prefix("gridhaul emu up ")).unwrap();
    let ping = lines.iter().find(|line| line.starts_with("ip netns exec gh-")).unwrap();
    let desk = Desk::new();
    let mut up = desk.command(&format!("emu up {}", repository().join(line).display()));
    let mut child = up.stdout(Stdio::null()).spawn().unwrap();
    wait_for("the network stands", || namespaces_of(child.id()).len() == 2);
    let words: Vec<String> = words(ping);
    let mut answer = String::new();
    // 1 % loss in each direction.
    wait_for("an echo", || {
        let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        answer = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success()
    });
    // 30 ms in each direction, and 84 B at 2 Mbit/s are 0.3 ms.
    let fastest =
        answer.split("min/avg/max/mdev = ").nth(1).and_then(|times| times.split('/').next());
    let fastest: f64 = fastest.expect("ping's summary").parse().unwrap();
    assert!((60.0..70.0).contains(&fastest), "{answer}");
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Replaces the bulk load.
const DATAGRAMS: &str =
    "transport = \"datagram\"\nload.periodic = { size = \"400 B\", every = \"50 ms\" }";

#[test]
fn the_suggested_ping_succeeds_for_a_datagram_flow() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL.replace("load = \"bulk\"", DATAGRAMS));
    let mut up = desk.command("emu up small.toml --prefix ght4");
    let mut child = up.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = said.find_map(|line| line.strip_prefix("try: ").map(words)).expect("a line to try");
    let ping = Command::new(&line[0]).args(&line[1..]).args(["-c", "2"]).output().unwrap();
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(ping.status.success(), "{line:?}: {}", String::from_utf8_lossy(&ping.stdout));
}

#[test]
fn without_a_reverse_path_no_ping_is_suggested() {
    if !can_create_namespaces() {
        return;
    }
    let one_way = SMALL.replace("load = \"bulk\"", DATAGRAMS).replace("both", "forward");
    let desk = Desk::new().file("small.toml", one_way);
    let mut up = desk.command("emu up small.toml --prefix ght5");
    let child = up.stdout(Stdio::piped()).spawn().unwrap();
    wait_for("the network stands", || Path::new("/run/netns/ght5-b").exists());
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(said.contains("no reverse path") && said.contains("flow up"), "{said}");
    assert!(!said.contains("ping -I"), "{said}");
}

#[test]
fn emu_clean_removes_the_namespaces_of_a_killed_network() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL);
    let mut child = up(&desk, "ght2");
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(names("ght2"), 2, "names outlive a kill");
    let swept = desk.run("emu clean");
    assert_eq!(swept.code, Some(0), "{}", swept.err);
    assert_eq!(names("ght2"), 0);
    assert!(desk.run("emu clean").out.is_empty(), "nothing is left for a second time");
}

#[test]
fn a_network_whose_device_is_deleted_ends_and_names_the_device() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL);
    let child = up(&desk, "ght3");
    assert!(succeeds("ip", &["-n", "ght3-a", "link", "del", "link0"]));
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("the device of link `wire` at node `a` was deleted"), "{err}");
    assert_eq!(names("ght3"), 0);
}

#[test]
fn too_few_open_files_are_an_error_with_a_remedy() {
    if !can_create_namespaces() {
        return;
    }
    let meters = SMALL.replace("a = {}", "a = { count = 300 }");
    let desk = Desk::new().file("small.toml", meters);
    let program = env!("CARGO_BIN_EXE_gridhaul");
    let line = format!("ulimit -n 64; exec {program} run --on emu small.toml -q");
    let mut command = Command::new("sh");
    let output = command.args(["-c", &line]).current_dir(desk.dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("opening a socket") && err.contains("ulimit -n"), "{err}");
    assert_eq!(desk.names("."), ["small.toml"], "nothing is half written");
}

/// A device that every user may open, as in most distributions.
const OPEN: &str = "mknod tun c 10 200; chmod 666 tun; mount --bind tun /dev/net/tun;";
