//! Reading the configuration again.

use crate::proxies::{Kind, Proxy, listen, wait_until};
use crate::relay;

#[test]
fn a_change_that_was_not_applied_can_be_reverted() {
    let server = listen();
    let keys = "pipes = 3\nconnections = 100";
    let proxy = Proxy::start(Kind::Split, relay(), server.local_addr().unwrap(), keys);
    let reload = |old: &str, new: &str, count: usize| {
        proxy.reload(old, new);
        wait_until("the configuration was read", || {
            proxy.reports().matches("the configuration was read again").count() == count
        });
        proxy.reports().matches("keys other than those of").count()
    };
    assert_eq!(reload("pipes = 3", "pipes = 4", 1), 1, "pipes need a restart");
    assert_eq!(reload("connections = 100", "connections = 90", 2), 2, "pipes are still others");
    assert_eq!(reload("pipes = 4", "pipes = 3", 3), 2, "all keys are applied");
}
