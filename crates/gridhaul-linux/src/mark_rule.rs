//! Rules of the packet filter that mark packets, changed without a program: nfnetlink
//! (`<linux/netfilter/nf_tables.h>`), in one transaction.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::Error;
use crate::netlink::{attribute, message, messages};

/// The rule of a chain that marks packets: it keeps some bits of the mark, and sets others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkRule {
    /// Name of the chain.
    pub chain: String,
    /// Bits that keep their values.
    pub keep: u32,
    /// Bits that are set, none of which is kept.
    pub set: u32,
}

/// Replaces all rules of chains of a table of family `inet`, in the namespace of the calling
/// thread: all of the changes are made, or none. Processes are not started, so that a busy machine
/// delays the change little.
///
/// # Errors
/// There is no such table or chain, or the caller lacks `CAP_NET_ADMIN`.
pub fn replace_mark_rules(table: &str, rules: &[MarkRule]) -> Result<(), Error> {
    let operation = || Error::call(format!("changing the packet filter {table}"));
    transact(&batch(table, rules), 2 * rules.len()).map_err(operation())
}

/// Sends a batch, and reads the acknowledgement of each of its messages.
fn transact(batch: &[u8], requests: usize) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(NETFILTER))?;
    send(&socket, batch, SendFlags::empty())?;
    let mut buffer = [0_u8; 1 << 13];
    let mut acknowledged = 0;
    // The kernel has answered when the call returns.
    while acknowledged < requests {
        let length = match recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(Errno::AGAIN) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return Err(error.into()),
        };
        for message in messages(&buffer[..length]) {
            match message.error() {
                Some(0) => acknowledged += 1,
                Some(code) => return Err(io::Error::from_raw_os_error(code)),
                None => {}
            }
        }
    }
    Ok(())
}

/// Message types: begin and end of a batch; new and deleted rules (`NFT_MSG_NEWRULE`,
/// `NFT_MSG_DELRULE`).
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const DELETE_RULE: u16 = SUBSYSTEM << 8 | 8;

/// `NFNL_SUBSYS_NFTABLES`, and the family of tables for both versions of IP (`NFPROTO_INET`).
const SUBSYSTEM: u16 = 10;
const INET: u8 = 1;

/// Attributes of a rule, of a list, of an expression, and of data.
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const NESTED: u16 = 1 << 15;

/// Attributes of the expressions `meta` and `bitwise`; the key of the mark (`NFT_META_MARK`), and
/// a register (`NFT_REG_1`).
const META_DESTINATION: u16 = 1;
const META_KEY: u16 = 2;
const META_SOURCE: u16 = 3;
const BITWISE_SOURCE: u16 = 1;
const BITWISE_DESTINATION: u16 = 2;
const BITWISE_LENGTH: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;
const MARK: u32 = 3;
const REGISTER: u32 = 1;

fn batch(table: &str, rules: &[MarkRule]) -> Vec<u8> {
    let request = libc::NLM_F_REQUEST as u16;
    let with_ack = request | libc::NLM_F_ACK as u16;
    let appended = with_ack | (libc::NLM_F_CREATE | libc::NLM_F_APPEND) as u16;
    let mut bytes = filter_message(BATCH_BEGIN, request, &[]);
    for rule in rules {
        let text = |text: &str| [text.as_bytes(), &[0]].concat();
        let place =
            [attribute(RULE_TABLE, &text(table)), attribute(RULE_CHAIN, &text(&rule.chain))]
                .concat();
        bytes.extend(filter_message(DELETE_RULE, with_ack, &place));
        let expressions = attribute(RULE_EXPRESSIONS | NESTED, &marking(rule));
        bytes.extend(filter_message(NEW_RULE, appended, &[place, expressions].concat()));
    }
    bytes.extend(filter_message(BATCH_END, request, &[]));
    bytes
}

/// A message with `struct nfgenmsg`.
fn filter_message(kind: u16, flags: u16, attributes: &[u8]) -> Vec<u8> {
    let is_rule = kind == NEW_RULE || kind == DELETE_RULE;
    let family = if is_rule { INET } else { 0 };
    let resource = if is_rule { 0 } else { SUBSYSTEM };
    let header = [[family, 0], resource.to_be_bytes()].concat();
    message(kind, flags, &[&header, attributes].concat())
}

/// The expressions of a rule: load the mark, change its bits, store it.
fn marking(rule: &MarkRule) -> Vec<u8> {
    let number = |kind: u16, value: u32| attribute(kind, &value.to_be_bytes());
    let data = |kind: u16, value: u32| {
        attribute(kind | NESTED, &attribute(DATA_VALUE, &value.to_ne_bytes()))
    };
    let load = [number(META_DESTINATION, REGISTER), number(META_KEY, MARK)].concat();
    let change = [
        number(BITWISE_SOURCE, REGISTER),
        number(BITWISE_DESTINATION, REGISTER),
        number(BITWISE_LENGTH, 4),
        data(BITWISE_MASK, rule.keep),
        data(BITWISE_XOR, rule.set),
    ]
    .concat();
    let store = [number(META_KEY, MARK), number(META_SOURCE, REGISTER)].concat();
    [expression("meta", &load), expression("bitwise", &change), expression("meta", &store)].concat()
}

fn expression(name: &str, data: &[u8]) -> Vec<u8> {
    let name = attribute(EXPRESSION_NAME, &[name.as_bytes(), &[0]].concat());
    let data = attribute(EXPRESSION_DATA | NESTED, data);
    attribute(LIST_ELEMENT | NESTED, &[name, data].concat())
}

#[cfg(test)]
mod tests {
    use gridhaul_testing::{has_program, has_tool};

    use super::*;
    use crate::{Namespace, apply_ruleset, read_output};

    #[test]
    fn rules_are_those_that_nft_writes_and_a_failure_changes_none() {
        if !has_program("nft")
            || !has_tool(Namespace::new().is_ok(), "the right to create namespaces")
        {
            return;
        }
        let rule =
            |chain: &str, set: u32| MarkRule { chain: chain.to_owned(), keep: !0xff_0000, set };
        let work = || {
            let text = |a: &str, b: &str| {
                let marking = "meta mark set meta mark & 0xff00ffff |";
                format!(
                    "table inet t {{\n\tchain a {{\n\t\t{marking} {a}\n\t}}\n\n\tchain b \
                     {{\n\t\t{marking} {b}\n\t}}\n}}\n"
                )
            };
            let list = || read_output("nft", &["list", "ruleset"], "test").unwrap();
            apply_ruleset(&text("0x00010000", "0x00010000"), "test").unwrap();
            let before = list();
            replace_mark_rules("t", &[rule("a", 0x2_0000), rule("b", 0x3_0000)]).unwrap();
            let after = list();
            apply_ruleset(&format!("flush ruleset\n{}", text("0x00020000", "0x00030000")), "test")
                .unwrap();
            assert_eq!(after, list());
            assert_ne!(after, before);
            let missing = [rule("a", 0x4_0000), rule("c", 0x4_0000)];
            let error = replace_mark_rules("t", &missing).unwrap_err().to_string();
            assert!(error.starts_with("changing the packet filter t: No such file"), "{error}");
            assert_eq!(after, list());
        };
        Namespace::new().unwrap().enter(work).unwrap();
    }
}
