//! Changing to a user with fewer rights.

use std::fs;
use std::io::{self, ErrorKind};

use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// Databases of users and groups (passwd(5), group(5)).
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Lets the process continue as a user and group, which are names or numbers. Without a group, it
/// is the one of the user. All capabilities are given up, except for `CAP_NET_ADMIN` if
/// `keeps_net_admin` is set.
///
/// Call it before the first thread is started: the kernel changes the calling thread only.
///
/// # Errors
/// There is no such user or group; the process is not root, and not this user; there are several
/// threads.
pub fn become_user(user: &str, group: Option<&str>, keeps_net_admin: bool) -> io::Result<()> {
    let (uid, gid) = find_ids(user, group)?;
    if (geteuid().as_raw(), getegid().as_raw()) == (uid, gid) {
        return Ok(());
    }
    if fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(io::Error::other("the process has several threads"));
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_keep_capabilities(keeps_net_admin)?;
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let kept = if keeps_net_admin { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: kept };
    set_capabilities(None, sets)?;
    if keeps_net_admin {
        // Another version of the program that replaces this one has the capability as well
        // (capabilities(7)).
        configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true)?;
    }
    Ok(())
}

/// Checks that there are such a user and group.
///
/// # Errors
/// There is none.
pub fn require_user(user: &str, group: Option<&str>) -> io::Result<()> {
    find_ids(user, group).map(|_| ())
}

/// Numbers of a user and of its group, or of another one.
fn find_ids(user: &str, group: Option<&str>) -> io::Result<(u32, u32)> {
    let (uid, own_group) = find_user(&read(USERS)?, user)?;
    Ok(match group {
        Some(group) => (uid, find_group(&read(GROUPS)?, group)?),
        None => (uid, own_group),
    })
}

fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

/// Number of a user, and of its group.
fn find_user(database: &str, user: &str) -> io::Result<(u32, u32)> {
    let rows = database.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let ids = |row: &[&str]| Some((row.get(2)?.parse().ok()?, row.get(3)?.parse().ok()?));
    let number: Option<u32> = user.parse().ok();
    for row in rows {
        if row.first() == Some(&user)
            && let Some(ids) = ids(&row)
        {
            return Ok(ids);
        }
        if let Some((uid, gid)) = ids(&row).filter(|(uid, _)| Some(*uid) == number) {
            return Ok((uid, gid));
        }
    }
    // A number needs no name.
    number.map(|number| (number, number)).ok_or_else(|| absent("user", user, USERS))
}

fn find_group(database: &str, group: &str) -> io::Result<u32> {
    let named = database.lines().find_map(|line| {
        let row: Vec<_> = line.split(':').collect();
        if row.first() == Some(&group) { row.get(2)?.parse().ok() } else { None }
    });
    named.or_else(|| group.parse().ok()).ok_or_else(|| absent("group", group, GROUPS))
}

fn absent(kind: &str, name: &str, database: &str) -> io::Error {
    io::Error::new(ErrorKind::NotFound, format!("there is no {kind} {name:?} in {database}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: &str =
        "root:x:0:0:root:/root:/bin/bash\nrelay:x:990:980::/:/usr/sbin/nologin\n";

    #[test]
    fn users_are_found_by_name_and_number() {
        assert_eq!(find_user(DATABASE, "relay").unwrap(), (990, 980));
        assert_eq!(find_user(DATABASE, "990").unwrap(), (990, 980));
        assert_eq!(find_user(DATABASE, "7").unwrap(), (7, 7));
        let error = find_user(DATABASE, "nobody-else").unwrap_err().to_string();
        assert_eq!(error, "there is no user \"nobody-else\" in /etc/passwd");
    }

    #[test]
    fn groups_are_found_by_name_and_number() {
        let database = "root:x:0:\nrelay:x:980:a,b\n";
        assert_eq!(find_group(database, "relay").unwrap(), 980);
        assert_eq!(find_group(database, "12").unwrap(), 12);
        assert!(find_group(database, "staff").is_err());
    }
}
