//! Commands and options of `gridhaul`, `cargo xtask` and `cargo` that documents name.

use std::collections::{BTreeMap, BTreeSet};

use crate::command_line::{chores, options, targets, words};
use crate::page::{Finding, Page};
use crate::repository::Repository;

/// Options of cargo that documents name by themselves.
const OF_CARGO: [&str; 3] = ["--no-default-features", "--release", "--nocapture"];

/// Libraries whose messages state a condition and its remedy without the command line. The
/// reference pages of `gridhaul-scenario` describe the command line as well.
const LIBRARIES: [&str; 9] = [
    "gridhaul-capture",
    "gridhaul-core",
    "gridhaul-data",
    "gridhaul-emu",
    "gridhaul-linux",
    "gridhaul-model",
    "gridhaul-report",
    "gridhaul-scenario",
    "gridhaul-sim",
];

/// The commands and options that exist.
pub(crate) struct Programs {
    /// Options of each command of `gridhaul`; the program itself has the empty name.
    commands: BTreeMap<String, BTreeSet<String>>,
    /// Words of the sources of xtask in quotation marks, and its options.
    chores: BTreeSet<String>,
    /// Paths that a command may name, and packages, tests and examples.
    targets: BTreeSet<String>,
}

impl Programs {
    /// Reads the help texts that the tests of the command line keep, and the sources of xtask.
    pub(crate) fn read(repository: &Repository) -> Self {
        let mut commands = BTreeMap::new();
        for path in repository.entries().filter(|path| path.starts_with("crates/")) {
            // `gridhaul measure` is a program of its own, with its own tests.
            let Some((_, name)) = path.split_once("/snapshots/") else { continue };
            let Some((_, name)) = name.split_once("__help__") else { continue };
            let Some(name) = name.strip_suffix("long.snap") else { continue };
            let name = name.trim_end_matches('_').replace('_', " ");
            commands.insert(name, options(&repository.read(path)));
        }
        // Programs of their own, whose options their own tests check.
        for program in ["measure", "relay"] {
            commands.entry(program.to_owned()).or_default();
        }
        let sources = repository
            .entries()
            .filter(|path| path.starts_with("xtask/src/") && repository.is_file(path));
        // The adapters of the Python package have command lines of their own.
        let adapters = repository
            .entries()
            .filter(|path| path.starts_with("python/gridhaul/") && path.ends_with(".py"));
        let chores =
            sources.chain(adapters).flat_map(|path| chores(&repository.read(path))).collect();
        let targets = repository.entries().flat_map(targets).collect();
        Self { commands, chores, targets }
    }

    /// Options of the command line that the code of libraries names. Their callers may have no
    /// command line.
    pub(crate) fn options_in_libraries(&self, repository: &Repository) -> Vec<Finding> {
        let is_source = |path: &&str| {
            let folders =
                LIBRARIES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
            folders && path.ends_with(".rs") && !path.contains("/reference/")
        };
        let mut findings = Vec::new();
        for path in repository.entries().filter(is_source) {
            let source = repository.read(path);
            let code = (1..).zip(source.lines()).filter(|(_, line)| !line.trim().starts_with("//"));
            for (number, line) in code {
                let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                let of_program = |word: &&str| {
                    is_option(word) && self.commands.values().any(|known| known.contains(*word))
                };
                findings.extend(words.filter(of_program).map(|word| {
                    let message =
                        format!("a library names the option `{word}` of the command line");
                    repository.page(path).finding(number, message)
                }));
            }
        }
        findings
    }

    /// Commands and options of the page that do not exist.
    pub(crate) fn check(&self, page: &Page) -> Vec<Finding> {
        let spans = page.code_spans().into_iter().map(|span| (span.line, span.text));
        let blocks =
            page.blocks().into_iter().map(|piece| (piece.line, piece.text.trim().to_owned()));
        let mut findings = Vec::new();
        for (line, text) in spans.chain(blocks) {
            findings.extend(self.fault(&text).map(|message| page.finding(line, message)));
        }
        findings
    }

    fn fault(&self, text: &str) -> Option<String> {
        let words = words(text);
        let words =
            words.strip_prefix(&["sudo"][..]).or(words.strip_prefix(&["$"][..])).unwrap_or(&words);
        match words {
            ["gridhaul", rest @ ..] => self.of_gridhaul(rest),
            ["cargo", "xtask", rest @ ..] => self.of_xtask(rest),
            ["cargo", rest @ ..] => self.of_cargo(rest),
            [option, ..] if is_option(option) => {
                let known = |option: &&str| {
                    let name = option.split('=').next().unwrap_or_default();
                    let own = self.commands.values().any(|options| options.contains(name));
                    own || self.chores.contains(name) || OF_CARGO.contains(&name)
                };
                let unknown = words.iter().filter(|word| is_option(word));
                unknown.into_iter().find(|option| !known(option)).map(|option| {
                    format!("names an option `{option}`, which no command has; see `gridhaul help`")
                })
            }
            [command, rest @ ..] if rest.iter().any(|word| is_option(word)) => {
                self.commands.contains_key(*command).then(|| self.of_gridhaul(words)).flatten()
            }
            _ => None,
        }
    }

    fn of_gridhaul(&self, words: &[&str]) -> Option<String> {
        let (mut command, mut rest) = (String::new(), words);
        while let Some((word, after)) = rest.split_first() {
            let longer = format!("{command} {word}").trim().to_owned();
            if !self.commands.contains_key(&longer) {
                break;
            }
            (command, rest) = (longer, after);
        }
        let first = rest.first().copied().unwrap_or("--help");
        if command.is_empty() && first.starts_with(char::is_alphabetic) {
            let known: Vec<_> = self.commands.keys().map(String::as_str).collect();
            return Some(format!(
                "names `gridhaul {first}`, but the commands are: {}",
                known.join(", ").trim_start_matches(", ")
            ));
        }
        let options = &self.commands[&command];
        // Options after `--` are those of another command.
        let own = rest.iter().take_while(|word| **word != "--");
        let unknown = own.map(|word| word.split('=').next().unwrap_or_default());
        let unknown = unknown.filter(|word| is_option(word));
        let option = unknown.into_iter().find(|option| !options.contains(*option));
        if let Some(option) = option {
            return Some(format!(
                "`gridhaul {command}` has no option `{option}`; see `gridhaul {command} --help`"
            ));
        }
        self.missing_file(rest)
    }

    fn of_xtask(&self, words: &[&str]) -> Option<String> {
        let unknown =
            words.iter().find(|word| word.starts_with(char::is_alphabetic) || is_option(word))?;
        let unknown = [Some(unknown), words.get(1)]
            .into_iter()
            .flatten()
            .find(|word| !self.chores.contains(**word))?;
        Some(format!("names `{unknown}`, which xtask/src does not define; see `cargo xtask help`"))
    }

    fn of_cargo(&self, words: &[&str]) -> Option<String> {
        for (flag, kind) in [
            ("-p", "package"),
            ("--package", "package"),
            ("--test", "test"),
            ("--example", "example"),
        ] {
            let places = words
                .iter()
                .enumerate()
                .filter(|(_, word)| **word == flag)
                .map(|(place, _)| place + 1);
            let named = places.filter_map(|place| words.get(place));
            if let Some(name) =
                named.into_iter().find(|name| !self.targets.contains(&format!("{kind} {name}")))
            {
                return Some(format!(
                    "names the {kind} `{name}`, which does not exist; correct the command"
                ));
            }
        }
        let own = words.first() == Some(&"run")
            && !words.iter().any(|word| matches!(*word, "-p" | "--example"));
        let place = words.iter().position(|word| *word == "--").filter(|_| own)?;
        self.of_gridhaul(&words[place + 1..])
    }

    /// The first argument that names a file of a folder of the repository and is none.
    fn missing_file(&self, words: &[&str]) -> Option<String> {
        let folders = ["scenarios/", "papers/", "bench/", "conformance/"];
        let named =
            words.iter().filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
        let missing =
            named.into_iter().find(|word| !self.targets.contains(&format!("file {word}")))?;
        Some(format!("names the file `{missing}`, which does not exist; correct the command"))
    }
}

/// Whether a word is an option, such as `--csv`, and not the rule of a printed table.
fn is_option(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
}

#[test]
fn a_command_or_an_option_that_does_not_exist_is_reported() {
    let help =
        options("Options:\n  -q, --quiet\n      --csv[=<FILE>]\n          Use --other instead\n");
    assert_eq!(help, ["--csv", "--quiet"].map(str::to_owned).into());
    let commands = [
        ("", vec!["--version"]),
        ("run", vec!["--csv", "--set"]),
        ("cc load", vec!["--hold"]),
        ("cc", vec![]),
    ];
    let programs = Programs {
        commands: commands
            .into_iter()
            .map(|(name, options)| {
                (name.to_owned(), options.into_iter().map(str::to_owned).collect())
            })
            .collect(),
        chores: chores("/// Run\nTest(Options),\n#[arg(long)]\nquick: bool,\nname: \"python\""),
        targets: ["crates/gridhaul-core", "conformance/tests/cases.rs", "scenarios/a.toml"]
            .into_iter()
            .flat_map(targets)
            .collect(),
    };
    let good = "`gridhaul run scenarios/a.toml --csv=F` `--hold` `cargo xtask test python` \
                `cargo test -p gridhaul-core --test cases` \
                `gridhaul --version` `cc load --hold` `run --set 'a=--x'` \
                `gridhaul`\n\n```sh\n------\ncargo run -- run --csv # --x\n```\n";
    assert_eq!(programs.check(&Page::made_up("a.md", good)), []);
    let bad = [
        "gridhaul walk",
        "gridhaul run --fast",
        "--slow",
        "cargo xtask tests",
        "cargo test -p gridhaul-cor",
        "gridhaul run scenarios/b.toml",
    ];
    for command in bad {
        let page = Page::made_up("a.md", &format!("First.\n`{command}`\n"));
        let found = programs.check(&page);
        assert!(
            found.len() == 1 && found[0].to_string().starts_with("a.md:2: "),
            "{command}: {found:?}"
        );
    }
}
