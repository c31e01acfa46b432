//! Runs and networks without the privileges of root.

use super::*;

/// Runs a command line as an unprivileged user, with a copy of the program and the scenario.
fn run_unprivileged(desk: &Desk, before: &str) -> (Option<i32>, String) {
    let dir = desk.dir.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    let copy = dir.join("gridhaul");
    gridhaul_testing::copy_program(env!("CARGO_BIN_EXE_gridhaul").as_ref(), &copy);
    let line = format!(
        "{before} exec setpriv --reuid=65534 --regid=65534 --clear-groups \
         ./gridhaul run --on emu small.toml -q"
    );
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", &line]).current_dir(dir).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn without_privileges_the_error_names_the_remedy() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL);
    // In this namespace only root may open the device, whatever the rules of the machine are.
    let private = "mknod tun c 10 200; chmod 600 tun; mount --bind tun /dev/net/tun;";
    let (code, err) = run_unprivileged(&desk, private);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("gridhaul doctor"), "{err}");
}

#[test]
fn without_privileges_congestion_control_is_refused_with_the_missing_privileges() {
    if !can_create_namespaces() {
        return;
    }
    for congestion_control in ["vegas", "medx"] {
        let stack = format!(
            "stack = \"own\"\n[stack.own]\ncongestion_control = \"{congestion_control}\"\n"
        );
        let desk = Desk::new().file("small.toml", SMALL.to_owned() + &stack);
        let (code, err) = run_unprivileged(&desk, OPEN);
        assert_eq!(code, Some(2), "{err}");
        let said = [
            "stack.own.congestion_control",
            &format!("gh_{congestion_control}"),
            "CAP_BPF",
            "run as root",
        ];
        assert!(said.iter().all(|text| err.contains(text)), "{err}");
        assert!(err.contains("gridhaul doctor") && err.contains("--on sim"), "{err}");
    }
}

#[test]
fn an_unprivileged_user_can_run_if_the_device_is_open() {
    if !can_create_namespaces() {
        return;
    }
    let desk = Desk::new().file("small.toml", SMALL.replace("5 s", "1 s"));
    let (code, err) = run_unprivileged(&desk, OPEN);
    assert_eq!(code, Some(0), "{err}");
    assert!(desk.names("results/small").contains(&"answer.json".to_owned()));
}
