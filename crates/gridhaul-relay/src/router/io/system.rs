//! The system that a hybrid router changes: its state before, changes, and their removal.

use std::path::Path;

use gridhaul_linux::{Error, apply_ruleset, read_output, read_sysctl, set_sysctl};
use gridhaul_scenario::relay::RouterConfig;

use super::devices;
use super::plan::{AFTER_MAIN, Plan, option, reverse_path_filter_of, table, undo, versions};
use super::record::Record;
use super::ruleset;
use super::step::Step;
use crate::runtime::{Level, RunError, report};

/// Whom errors of programs name.
pub(super) const NODE: &str = "the hybrid router";

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
            devices::repeat_links(router, &plan)?;
            return Ok((Changes::Adopted, record));
        }
        remove_steps(&record.undo);
        Record::remove(path)?;
    }
    check_free(router)?;
    let before: Vec<_> =
        router.link.values().map(devices::read_before).collect::<Result<_, Error>>()?;
    let record = Record::new(&plan, undo(router, &before));
    record.write(path)?;
    let done =
        devices::apply_links(router, &plan).and_then(|()| plan.rules.iter().try_for_each(apply));
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
    let link_headers: Vec<_> = router.link.values().map(devices::link_header).collect();
    Ok(Plan::new(router, &preferred(router), of_devices, &link_headers))
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
    devices::check_free(router)
}

/// Whether a hybrid router has set up the packet filter.
pub(super) fn is_installed() -> bool {
    let words: Vec<_> = ["list", "table"].into_iter().chain(ruleset::TABLE.split(' ')).collect();
    read_output("nft", &words, NODE).is_ok()
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
