//! The system that a hybrid router changes: its state before, changes, and their removal.

use std::path::Path;

use gridhaul_linux::{Error, apply_ruleset, interface_index, read_output, read_sysctl, set_sysctl};
use gridhaul_scenario::relay::{RouterConfig, RouterLink};

use super::plan::{
    AFTER_MAIN, DeviceBefore, Plan, option, reverse_path_filter_of, table, undo, versions,
};
use super::record::Record;
use super::ruleset;
use super::step::Step;
use crate::runtime::{Level, RunError, report};

/// Bytes of the Ethernet header.
const ETHERNET: u32 = 14;

/// Whom errors of programs name.
const NODE: &str = "the hybrid router";

/// Whose changes a router uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changes {
    Own,
    /// Those of an earlier process, which was killed or is replaced.
    Adopted,
}

/// Makes all changes. Those of an earlier process are adopted if they are the same, or else undone
/// first.
pub(super) fn install(router: &RouterConfig, path: &Path) -> Result<(Changes, Record), RunError> {
    let plan = plan(router)?;
    if let Some(record) = Record::read(path)? {
        let set: Vec<_> = plan.steps().cloned().collect();
        if record.set == set && is_installed() {
            // The kernel may have removed routes meanwhile.
            plan.routes.iter().flatten().try_for_each(apply)?;
            return Ok((Changes::Adopted, record));
        }
        remove_steps(&record.undo);
        Record::remove(path)?;
    }
    check_free(router)?;
    let before: Vec<_> = router.link.values().map(read_before).collect::<Result<_, Error>>()?;
    let record = Record::new(&plan, undo(router, &before));
    record.write(path)?;
    let done = plan.steps().try_for_each(apply);
    if let Err(error) = done {
        remove_steps(&record.undo);
        Record::remove(path)?;
        return Err(error.into());
    }
    Ok((Changes::Own, record))
}

/// Undoes all changes that are recorded. Returns whether there were any.
pub(super) fn remove(path: &Path) -> Result<bool, RunError> {
    let Some(record) = Record::read(path)? else { return Ok(false) };
    remove_steps(&record.undo);
    Record::remove(path)?;
    Ok(true)
}

/// Undoes the changes of a router that ends. If its record was deleted meanwhile, the copy in the
/// memory of the process serves.
pub(super) fn remove_own(path: &Path, copy: &Record) -> Result<(), RunError> {
    if !remove(path)? {
        let path = path.display();
        let text = format!("router.state: {path} was deleted while the hybrid router was running");
        report(Level::Warning, &text);
        remove_steps(&copy.undo);
    }
    Ok(())
}

/// The changes that a router needs at its start.
pub(super) fn plan(router: &RouterConfig) -> Result<Plan, Error> {
    // Packets arrive over any link. The larger value of a device and of all devices applies: where
    // the latter is on, the loose mode (RFC 3704, section 2.4) is the weakest; it drops packets on
    // devices without an address.
    let of_all = read_sysctl(&reverse_path_filter_of("all"))?;
    let of_devices = if of_all == "0" { "0" } else { "2" };
    let link_headers: Vec<_> = router.link.values().map(link_header).collect();
    Ok(Plan::new(router, &preferred(router), of_devices, &link_headers))
}

/// Bytes below the IP header that a shaper of the device of a link would count: those of Ethernet.
/// A device that does not exist at present is shaped when it does.
fn link_header(link: &RouterLink) -> u32 {
    if link.shaper.is_none() {
        return 0;
    }
    let shown = read_output("ip", &["link", "show", "dev", &link.device], NODE);
    if shown.is_ok_and(|text| text.contains("link/ether")) { ETHERNET } else { 0 }
}

/// The first link of each class, and the first link for all other packets.
fn preferred(router: &RouterConfig) -> Vec<usize> {
    let of_class = |name: &String| router.link.get_index_of(name).unwrap_or(0);
    let classes = router.class.values().map(|class| class.links.first().map_or(0, of_class));
    classes.chain([0]).collect()
}

/// Makes a change.
pub(super) fn apply(step: &Step) -> Result<(), Error> {
    match step {
        Step::Sysctl { name, value } => set_sysctl(name, value),
        Step::Ruleset(text) => apply_ruleset(text, NODE),
        Step::Command { program, arguments } => {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            read_output(program.name(), &arguments, NODE).map(drop)
        }
    }
}

/// A device of the configuration must exist, and carry the probes of its link.
pub(super) fn check_devices(router: &RouterConfig) -> Result<(), RunError> {
    for (name, link) in &router.link {
        if interface_index(&link.device).is_err() {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.device: there is no network device {:?}\n  help: `ip link` \
                 lists the devices; create it before the relay starts",
                link.device
            )));
        }
        if let (Some(size), Some(mtu)) = (link.probe_size, mtu_of(&link.device)?)
            && size.get() > mtu
        {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.probe_size: {} B exceed the MTU of {}, {mtu} B\n  help: write \
                 the MTU of the path, at most \"{mtu} B\"",
                size.get(),
                link.device
            )));
        }
    }
    Ok(())
}

/// The MTU of a device in bytes.
fn mtu_of(device: &str) -> Result<Option<u64>, Error> {
    let text = read_output("ip", &["link", "show", "dev", device], NODE)?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "mtu");
    Ok(words.nth(1).and_then(|mtu| mtu.parse().ok()))
}

/// Nothing that belongs to others may have to be replaced.
fn check_free(router: &RouterConfig) -> Result<(), RunError> {
    if is_installed() {
        let table = ruleset::TABLE;
        return Err(RunError::Invalid(format!(
            "router: the packet filter has a table {table} already\n  help: stop the other hybrid \
             router; if none is running, undo by hand what it has left: `nft delete table \
             {table}`, and the rules that `ip rule` lists for its tables (from {} on), with `ip \
             rule del` and `ip route flush table`",
            router.table
        )));
    }
    for (number, name) in router.link.keys().enumerate() {
        let number = table(router, number);
        let table = number.to_string();
        for version in versions(router) {
            let option = option(version);
            let mut rules = String::new();
            for preference in [number, number + AFTER_MAIN].map(|number| number.to_string()) {
                let words = [option, "rule", "show", "pref", &preference];
                rules += &read_output("ip", &words, NODE)?;
            }
            // A table that was never used does not exist, which is an error of `ip`.
            let routes = read_output("ip", &[option, "route", "show", "table", &table], NODE);
            if !rules.trim().is_empty() || !routes.unwrap_or_default().trim().is_empty() {
                return Err(RunError::Invalid(format!(
                    "router.table: table or preference {table}, for link {name}, is in use\n  \
                     help: choose another number: `ip rule` and `ip route show table all` list \
                     those in use"
                )));
            }
        }
    }
    for (name, link) in router.link.iter().filter(|(_, link)| link.shaper.is_some()) {
        let device = &link.device;
        let found = read_output("tc", &["qdisc", "show", "dev", device, "root"], NODE)?;
        // Queueing disciplines that the kernel has chosen have the handle 0.
        if found.lines().any(|line| !line.contains(" 0: ")) {
            return Err(RunError::Invalid(format!(
                "router.link.{name}.shaper: {device} has a queueing discipline already: {}\n  \
                 help: remove it (`tc qdisc del dev {device} root`), or the shaper",
                found.trim()
            )));
        }
    }
    Ok(())
}

/// Whether a hybrid router has set up the packet filter.
pub(super) fn is_installed() -> bool {
    let words: Vec<_> = ["list", "table"].into_iter().chain(ruleset::TABLE.split(' ')).collect();
    read_output("nft", &words, NODE).is_ok()
}

fn read_before(link: &RouterLink) -> Result<DeviceBefore, Error> {
    let device = &link.device;
    let reverse_path_filter = read_sysctl(&reverse_path_filter_of(device))?;
    let gso_max_segments = match &link.shaper {
        Some(_) => {
            let text = read_output("ip", &["-d", "link", "show", "dev", device], NODE)?;
            let mut words = text.split_whitespace().skip_while(|word| *word != "gso_max_segs");
            words.nth(1).map(str::to_owned)
        }
        None => None,
    };
    Ok(DeviceBefore { reverse_path_filter, gso_max_segments })
}

/// Undoes changes. Those that were undone already, or that went with their device, are none.
fn remove_steps(steps: &[Step]) {
    const ABSENT: [&str; 6] = [
        "No such",
        "Cannot find",
        "does not exist",
        "Invalid handle",
        "handle of zero",
        "FIB table does not exist",
    ];
    for step in steps {
        if let Err(error) = apply(step) {
            let text = error.to_string();
            if !ABSENT.iter().any(|absent| text.contains(absent)) {
                report(Level::Warning, &format!("cannot undo `{step}`: {text}"));
            }
        }
    }
}
