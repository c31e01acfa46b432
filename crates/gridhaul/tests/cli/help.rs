//! Snapshots of the help texts, so that reviews show changes of the command line.

use crate::support::Desk;

const COMMANDS: [&str; 30] = [
    "run",
    "sweep",
    "merge",
    "compare",
    "export",
    "explore",
    "plan",
    "paper",
    "explain",
    "import",
    "import natig",
    "import pcap",
    "import iperf",
    "import ping",
    "import meters",
    "import topology",
    "model",
    "model chain",
    "emu",
    "emu up",
    "emu clean",
    "cc",
    "cc load",
    "cc unload",
    "cc list",
    "cc status",
    "check",
    "schema",
    "doctor",
    "completions",
];

#[test]
fn help_texts_match_their_snapshots() {
    let desk = Desk::new();
    for flag in ["-h", "--help"] {
        let length = if flag == "-h" { "short" } else { "long" };
        let done = desk.run(flag);
        assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
        insta::assert_snapshot!(format!("{length}"), done.out);
        for command in COMMANDS {
            let done = desk.run(&format!("{command} {flag}"));
            assert_eq!(done.code, Some(0), "{command} {flag}");
            insta::assert_snapshot!(format!("{}_{length}", command.replace(' ', "_")), done.out);
        }
    }
}

#[test]
fn help_of_cc_load_names_the_defaults_of_the_algorithms() {
    let help = Desk::new().run("cc load --help").out;
    let gridhaul_cc::Settings { vegas, medx, .. } = gridhaul_cc::Settings::default();
    let defaults = [
        ("--vegas-alpha", f64::from(vegas.alpha)),
        ("--vegas-beta", f64::from(vegas.beta)),
        ("--vegas-gamma", f64::from(vegas.gamma)),
        ("--medx-alpha", medx.alpha),
        ("--medx-beta", medx.beta),
        ("--medx-buffer", f64::from(medx.buffer)),
    ];
    for (option, value) in defaults {
        let of_option = help.split("\n\n").find(|part| part.contains(option)).unwrap();
        assert!(of_option.contains(&format!("[default: {value}]")), "{of_option}");
    }
}

#[test]
fn long_help_names_the_exit_codes() {
    for command in ["", "run", "sweep", "compare", "plan", "paper"] {
        let help = Desk::new().run(&format!("{command} --help")).out;
        assert!(help.contains("Exit codes:") && help.contains("  3  internal error"), "{command}");
    }
}

#[test]
fn usage_errors_end_with_2() {
    for line in ["", "fly", "run", "run a.toml --on moon", "run a.toml --speed 3", "compare a.toml"]
    {
        let done = Desk::new().run(line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(done.out.is_empty() && !done.err.is_empty(), "{line}: {done:?}");
    }
}

#[test]
fn completions_are_complete_and_shells_accept_them() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let done = Desk::new().run(&format!("completions {shell}"));
        assert_eq!(done.code, Some(0));
        let mut words = COMMANDS.iter().flat_map(|command| command.split(' '));
        assert!(words.all(|word| done.out.contains(word)), "{shell}");
    }
    let desk = Desk::new();
    let script = desk.run("completions bash").out;
    let desk = desk.file("completions.bash", script);
    let bash = std::process::Command::new("bash")
        .args(["-n", "completions.bash"])
        .current_dir(desk.dir.path())
        .output()
        .unwrap();
    assert!(bash.status.success(), "{}", String::from_utf8_lossy(&bash.stderr));
}

#[test]
fn schemas_are_json_schemas() {
    for (of, key) in [("", "duration"), ("scenario", "duration"), ("answer", "points")] {
        let done = Desk::new().run(&format!("schema {of}"));
        assert_eq!(done.code, Some(0));
        let schema: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert!(schema["properties"][key].is_object(), "{of}");
    }
}

#[test]
fn doctor_names_the_installation_of_missing_features() {
    let desk = Desk::new();
    let full = desk.run("doctor");
    assert_eq!(full.code, Some(0));
    let is_state = |line: &&str| line.starts_with("ok ") || line.starts_with("missing ");
    assert!(full.out.lines().filter(is_state).count() > 5, "{}", full.out);
    // Users come first: the emulator before the tools of tests.
    let place = |text: &str| full.out.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = ["network namespaces", "gridhaul-measure", "For the development", "tshark"];
    assert!(order.map(place).is_sorted(), "{}", full.out);
    let bare = desk.command("doctor").env("PATH", "").output().unwrap();
    let bare = String::from_utf8(bare.stdout).unwrap();
    let line = bare.lines().find(|line| line.contains("tshark")).unwrap();
    assert!(line.starts_with("missing ") && line.ends_with("apt-get install tshark"), "{line}");
    // A program that is not installed needs no broker.
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("gridhaul");
    gridhaul_testing::copy_program(env!("CARGO_BIN_EXE_gridhaul").as_ref(), &copy);
    let mut command = std::process::Command::new(copy);
    let output = command.arg("doctor").env("PATH", "").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("mosquitto"), "{text}");
    assert!(text.contains("cargo install --path crates/gridhaul-measure"), "{text}");
}

#[test]
fn a_verbose_version_states_commit_features_and_the_support_of_the_kernel() {
    let desk = Desk::new();
    let done = desk.run("--version --verbose");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let version = concat!("gridhaul ", env!("CARGO_PKG_VERSION"), "\ncommit: ");
    assert!(done.out.starts_with(version), "{}", done.out);
    for line in ["features: emulation", "kernel TCP: cubic and reno: "] {
        assert!(done.out.contains(&format!("\n{line}")), "{line} is missing:\n{}", done.out);
    }
    assert_eq!(desk.run("--version").out, concat!("gridhaul ", env!("CARGO_PKG_VERSION"), "\n"));
    let refused = desk.run("--verbose doctor");
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("'--version'"), "{}", refused.err);
}
