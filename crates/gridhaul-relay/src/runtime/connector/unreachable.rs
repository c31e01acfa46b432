//! Explanations of peers that cannot be reached, with remedies.

use std::io::{self, ErrorKind};

/// Meaning of an error of connect(2). `key` is the key with the address of the peer.
pub(crate) fn explain(error: &io::Error, key: &str) -> String {
    let remedy = match error.kind() {
        ErrorKind::ConnectionRefused => "no program listens there: start it",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "this machine has no route to the address: check its network"
        }
        ErrorKind::TimedOut => NO_ANSWER,
        _ => return error.to_string(),
    };
    with_remedy(&error.to_string(), remedy, key)
}

/// The peer has not answered in time.
pub(crate) fn explain_silence(limit: impl std::fmt::Display, key: &str) -> String {
    with_remedy(&format!("no answer within {limit}"), NO_ANSWER, key)
}

/// The name of the peer has no address.
pub(crate) fn explain_name(error: &str, key: &str) -> String {
    with_remedy(error, "check the name service", key)
}

const NO_ANSWER: &str = "check that the machine runs and that no firewall drops its packets";

fn with_remedy(error: &str, remedy: &str, key: &str) -> String {
    format!("{error}\n  help: {remedy}, or correct `{key}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_with_a_remedy_name_the_key() {
        let refused = explain(&io::Error::from_raw_os_error(libc_refused()), "head.address");
        assert!(refused.contains("Connection refused"), "{refused}");
        assert!(refused.ends_with("start it, or correct `head.address`"), "{refused}");
        let other = explain(&io::Error::other("closed"), "head.address");
        assert_eq!(other, "closed");
        let silent = explain_silence("5 s", "head.address");
        assert!(silent.starts_with("no answer within 5 s\n  help: check that"), "{silent}");
    }

    fn libc_refused() -> i32 {
        rustix::io::Errno::CONNREFUSED.raw_os_error()
    }
}
