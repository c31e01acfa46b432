//! Errors of configurations of a bridge.

use std::fs;
use std::process::Command;

use crate::network::relay;

fn check(keys: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relay.toml");
    fs::write(&file, format!("name = \"test\"\n[bridge]\n{keys}")).unwrap();
    let done = Command::new(relay()).arg("check").arg(&file).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{keys}");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn a_missing_interface_is_reported_with_a_remedy() {
    let error = check("interfaces = [\"lo\", \"absent7\"]\nfail_open = false\n");
    assert!(error.contains("bridge.interfaces: there is no interface \"absent7\" here"), "{error}");
    assert!(error.contains("help: `ip link` lists the interfaces"), "{error}");
}
