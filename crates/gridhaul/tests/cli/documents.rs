//! Every command in a `sh` block of the documents is run, and other commands (`cargo xtask ...`)
//! must exist. A `text` block that follows a `sh` block without a word between them is part of the
//! output of the last command there.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::{Desk, repository, words};

/// Documents for readers.
fn documents() -> Vec<PathBuf> {
    let mut files: Vec<_> =
        ["README.md", "CONTRIBUTING.md"].map(|name| repository().join(name)).into();
    let mut folders =
        ["docs", "docs/guides", "papers"].map(|name| repository().join(name)).to_vec();
    let papers = fs::read_dir(repository().join("papers")).unwrap();
    folders.extend(papers.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    for folder in folders {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    files.sort();
    files
}

/// Command lines of the blocks marked `sh`, without prompts and comments.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inside = false;
    let mut continued = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside && line.trim() == "```sh";
            continue;
        }
        let line = line.split(" # ").next().unwrap_or_default().trim();
        if !inside || line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(part) = line.strip_suffix('\\') {
            continued.push_str(part);
            continue;
        }
        lines.push(std::mem::take(&mut continued) + line);
    }
    lines
}

/// Commands whose output the document shows, with that output.
fn shown_outputs(text: &str) -> Vec<(String, &str)> {
    let blocks = text.split("\n```sh\n").skip(1);
    let outputs = blocks.filter_map(|block| {
        let (lines, rest) = block.split_once("\n```\n")?;
        let (output, _) = rest.strip_prefix("\n```text\n")?.split_once("\n```")?;
        Some((commands(&format!("```sh\n{lines}\n```")).pop()?, output))
    });
    outputs.collect()
}

/// Names and contents of the blocks marked `toml NAME`: files that the reader writes.
fn written_files(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("\n```toml ").skip(1);
    let files = blocks.filter_map(|block| {
        let (name, rest) = block.split_once('\n')?;
        Some((name, rest.split_once("\n```")?.0))
    });
    files.collect()
}

/// The arguments for this program, if the line calls it.
fn arguments(line: &str) -> Option<&str> {
    let starts = ["cargo run --release -- ", "gridhaul "];
    starts.into_iter().find_map(|start| line.strip_prefix(start))
}

/// A temporary folder with the files that the documents name.
fn desk() -> Desk {
    let desk = Desk::new();
    for folder in ["scenarios", "scenarios/natig", "papers/sa-tcp"] {
        let here = desk.dir.path().join(folder);
        fs::create_dir_all(&here).unwrap();
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, here.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    desk
}

/// Commands that take minutes, and an option that shortens them. They run unmodified in
/// `every_long_command_in_the_documents_works`.
const LONG: [(&str, &str); 2] =
    [("plan scenarios/district.toml", " --verify none"), ("paper plc", " --quick")];

/// The arguments to run; `None` if this test skips the command.
fn chosen(arguments: &str, long: bool) -> Option<String> {
    let shorter = LONG.iter().find(|(start, _)| arguments.starts_with(start));
    match (shorter, long) {
        (None, true) => None,
        (Some((_, option)), false) => Some(arguments.to_owned() + option),
        _ => Some(arguments.to_owned()),
    }
}

#[test]
fn every_command_in_the_documents_works() {
    assert!(run_commands(false) > 3, "few commands were found");
}

#[test]
#[ignore = "minutes; `cargo test -p gridhaul --test cli every_long_command -- --ignored`"]
fn every_long_command_in_the_documents_works() {
    assert!(run_commands(true) >= LONG.len(), "few commands were found");
}

/// Runs the commands of all documents, two at a time, and returns the number of commands.
fn run_commands(long: bool) -> usize {
    let units = Mutex::new(units());
    let commands = AtomicUsize::new(0);
    // These commands take longest: each is run once, even if several documents contain it.
    let papers = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(unit) = units.lock().unwrap().pop_front() else { break };
                    let first = |line: &str| papers.lock().unwrap().insert(line.to_owned());
                    commands.fetch_add(run_unit(&unit, long, first), Ordering::Relaxed);
                }
            });
        }
    });
    commands.into_inner()
}

/// Commands of a document, of which each may use the results of those before it.
struct Unit {
    file: PathBuf,
    lines: Vec<String>,
}

/// All commands. Those of a paper do not depend on each other, and the longest are among them: a
/// simulation uses the processor while an emulation waits.
fn units() -> VecDeque<Unit> {
    let (mut papers, mut guides) = (VecDeque::new(), VecDeque::new());
    // The last document has the longest simulation.
    for file in documents().into_iter().rev() {
        let lines = commands(&fs::read_to_string(&file).unwrap());
        if file.starts_with(repository().join("papers")) {
            let unit = |line| Unit { file: file.clone(), lines: vec![line] };
            papers.extend(lines.into_iter().map(unit));
        } else {
            guides.push_back(Unit { file, lines });
        }
    }
    // An emulation waits for real time: it begins first.
    papers.make_contiguous().sort_by_key(|unit| !unit.lines[0].contains("emu"));
    papers.extend(guides);
    papers
}

/// Pages with networks of their own, whose commands are run by tests of the relay
/// (crates/gridhaul-relay/tests/bridge/guide.rs, crates/gridhaul-relay/tests/router/guide.rs).
const RUN_BY_THE_RELAY: [&str; 2] = ["docs/guides/bridge.md", "docs/guides/hybrid-router.md"];

/// Runs commands in a folder of their own. `first_use` returns whether this command of a paper is
/// new.
fn run_unit(unit: &Unit, long: bool, first_use: impl Fn(&str) -> bool) -> usize {
    let Unit { file, lines } = unit;
    let mut run = 0;
    let desk = desk();
    let text = fs::read_to_string(file).unwrap();
    let shown = shown_outputs(&text);
    for (name, contents) in written_files(&text) {
        fs::write(desk.dir.path().join(name), contents).unwrap();
    }
    for line in lines {
        let place = format!("{}: {line}", file.display());
        let (call, target) = match line.split_once(" > ") {
            Some((call, target)) => (call, Some(target.trim())),
            None => (line.as_str(), None),
        };
        if RUN_BY_THE_RELAY.iter().any(|page| file.ends_with(page))
            || crate::kernel::runs(file, line)
            || crate::emu::runs(line)
            || crate::explore::runs(line)
            // A program of its own, whose tests run these commands
            // (crates/gridhaul-measure/tests/documents.rs).
            || line.starts_with("gridhaul measure ")
            || line.starts_with("gridhaul paper ") && !first_use(line)
        {
            continue;
        }
        let is_shown = |out: &str| {
            for (_, output) in shown.iter().filter(|(command, _)| command == line) {
                assert!(out.contains(output), "{place}\nshows\n{output}\nnot\n{out}");
            }
        };
        if TOOLS.iter().any(|tool| line.split(' ').next() == Some(*tool)) {
            let out = run_tool(&desk, line, &place);
            out.iter().for_each(|out| is_shown(out));
            run += out.iter().count();
        } else if let Some(arguments) = arguments(call) {
            let Some(arguments) = chosen(arguments, long) else { continue };
            let done = desk.run(&arguments);
            assert_eq!(done.code, Some(0), "{place}\n{}\n{}", done.out, done.err);
            is_shown(&done.out);
            if let Some(target) = target {
                fs::write(desk.dir.path().join(target), done.out).unwrap();
            }
            run += 1;
        } else {
            assert!(known(line), "{place}: nothing tests this command");
        }
    }
    run
}

/// Programs that read results; the test runs them in the folder of the commands before them.
const TOOLS: [&str; 2] = ["grep", "tshark"];

/// Runs a line in a shell, if its program is installed. It must print something.
fn run_tool(desk: &Desk, line: &str, place: &str) -> Option<String> {
    let program = line.split(' ').next().unwrap_or_default();
    if !gridhaul_testing::has_program(program) {
        return None;
    }
    let shell = Command::new("sh").args(["-c", line]).current_dir(desk.dir.path()).output();
    let done = shell.unwrap();
    assert!(done.status.success() && !done.stdout.is_empty(), "{place}\n{done:?}");
    Some(String::from_utf8(done.stdout).unwrap())
}

/// Commands that other tests run, or that only download and build.
fn known(line: &str) -> bool {
    let words = words(line);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["cargo", "xtask", command, ..] => {
            let source = fs::read_to_string(repository().join("xtask/src/main.rs")).unwrap();
            let mut variants = source.lines().map(str::trim);
            variants.any(|line| {
                line.trim_end_matches(',')
                    .split(['(', ' '])
                    .next()
                    .unwrap_or_default()
                    .to_lowercase()
                    == command
            })
        }
        ["cargo", "install", "--path", path] => {
            repository().join(path).join("Cargo.toml").is_file()
        }
        ["cd" | "git", ..] => true,
        // The guide of the relay is run by crates/gridhaul-relay/tests/daemon/guide.rs.
        ["gridhaul-relay" | "bash", ..] => true,
        // They take minutes, or need permissions.
        ["valgrind" | "perf" | "callgrind_annotate" | "heaptrack", ..] => true,
        _ => false,
    }
}

#[test]
fn links_between_documents_exist() {
    for file in documents() {
        let text = fs::read_to_string(&file).unwrap();
        for (start, _) in text.match_indices("](") {
            let target = text[start + 2..].split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let found = file.parent().unwrap().join(path);
            assert!(found.exists(), "{}: {target} does not exist", file.display());
        }
    }
}

#[test]
fn the_first_two_commands_of_the_readme_are_the_run_and_the_test() {
    let text = fs::read_to_string(repository().join("README.md")).unwrap();
    let commands = commands(&text);
    assert_eq!(commands[0], "cargo run --release -- run scenarios/hybrid.toml");
    assert_eq!(commands[1], "cargo xtask test");
    let test = fs::read_to_string(repository().join(".ci/run")).unwrap();
    assert!(test.lines().any(|line| line == "exec cargo xtask test"));
    assert!(
        Command::new("bash")
            .args(["-n"])
            .arg(repository().join(".ci/run"))
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn the_output_after_a_block_is_that_of_its_last_command() {
    let block = "a\n\n```sh\none\ntwo \\\n  three # four\n```\n";
    for (between, expected) in [("\n", true), ("\nwords\n\n", false)] {
        let text = format!("{block}{between}```text\nfive\nsix\n```\n");
        let shown = shown_outputs(&text);
        assert_eq!(shown, Vec::from_iter(expected.then(|| ("two three".to_owned(), "five\nsix"))));
    }
    for page in ["README.md", "docs/tutorial.md", "docs/guides/debugging.md"] {
        let text = fs::read_to_string(repository().join(page)).unwrap();
        assert!(!shown_outputs(&text).is_empty(), "{page} shows no output");
    }
}

#[test]
fn the_readme_is_a_page_of_900_words_with_lines_of_at_most_150_columns() {
    let text = fs::read_to_string(repository().join("README.md")).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= 900, "README.md has {words} words: move details to docs/");
    // Pictures carry their description in the line.
    let mut long = text.lines().filter(|line| line.chars().count() > 150);
    let long = long.find(|line| !line.starts_with("<img"));
    assert_eq!(long, None, "a line that readers must scroll");
}
