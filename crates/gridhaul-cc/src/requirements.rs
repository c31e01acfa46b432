//! Requirements of the algorithms, and a check of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use gridhaul_linux::bpf::KERNEL_TYPES;

use crate::Algorithm;

/// A missing requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRequirement {
    /// Description.
    pub what: String,
    /// How to meet the requirement.
    pub remedy: String,
}

/// The missing requirements of all algorithms on this machine.
#[must_use]
pub fn missing_requirements() -> Vec<MissingRequirement> {
    missing_requirements_for(&Algorithm::ALL, None)
}

/// The missing requirements of these algorithms. No mounted control group is required if `cgroup`
/// is given.
#[must_use]
pub fn missing_requirements_for(
    algorithms: &[Algorithm],
    cgroup: Option<&Path>,
) -> Vec<MissingRequirement> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let found = [
        too_old(&release),
        (!Path::new(KERNEL_TYPES).exists()).then(|| MissingRequirement {
            what: format!("type information of the kernel ({KERNEL_TYPES})"),
            remedy: "a kernel built with CONFIG_DEBUG_INFO_BTF=y, as those of distributions \
                     are"
            .into(),
        }),
        missing_permission(),
        (algorithms.contains(&Algorithm::Medx) && cgroup.is_none() && cgroup_root().is_none())
            .then(|| MissingRequirement {
                what: "control groups, version 2, for the TCP option of gh_medx".into(),
                remedy: "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none \
                         /sys/fs/cgroup/unified"
                    .into(),
            }),
        cgroup.filter(|_| algorithms.contains(&Algorithm::Medx)).and_then(missing_cgroup),
    ];
    found.into_iter().flatten().collect()
}

/// Whether the folder is not a control group of version 2: each of those has a list of controllers.
fn missing_cgroup(folder: &Path) -> Option<MissingRequirement> {
    (!folder.join("cgroup.controllers").exists()).then(|| MissingRequirement {
        what: format!("a control group, version 2, at {}", folder.display()),
        remedy: "name a folder below the mount of cgroup2 (`findmnt -t cgroup2`), or create one \
                 there with mkdir"
            .into(),
    })
}

/// Capabilities that this process lacks.
pub(crate) fn missing_permission() -> Option<MissingRequirement> {
    // Root in a user namespace may not load programs into the kernel.
    let namespace = fs::read_link("/proc/self/ns/user");
    let own = namespace.is_ok_and(|link| link != Path::new(FIRST_USER_NAMESPACE));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    missing_capabilities(if own { "CapEff:\t0" } else { &status })
}

/// `USER_NS_INIT_INO` (linux/nsfs.h): the initial user namespace.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// Mount point of the root control group.
pub(crate) fn cgroup_root() -> Option<PathBuf> {
    mount_of("cgroup2", &fs::read_to_string("/proc/self/mounts").unwrap_or_default())
}

/// The first mount point of a file system type.
pub(crate) fn mount_of(kind: &str, mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, of) = (fields.next()?, fields.next()?);
        (of == kind).then(|| PathBuf::from(at))
    })
}

/// Whether a name is registered in the kernel, as listed for the current network namespace.
pub(crate) fn is_registered(name: &str) -> bool {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    list.is_ok_and(|list| list.split_whitespace().any(|listed| listed == name))
}

/// BPF links to registered structures need Linux 6.4; without them an algorithm stays loaded after
/// its process was killed.
const RELEASE_MIN: (u32, u32) = (6, 4);

fn too_old(release: &str) -> Option<MissingRequirement> {
    let mut numbers = release.trim().split(['.', '-']).map_while(|part| part.parse().ok());
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let (min_major, min_minor) = RELEASE_MIN;
    ((major, minor) < RELEASE_MIN).then(|| MissingRequirement {
        what: "a kernel that unloads congestion control when its process ends".into(),
        remedy: format!("Linux {min_major}.{min_minor} or later; this is {}", release.trim()),
    })
}

/// Bits of `CapEff`, from `linux/capability.h`.
const CAPABILITIES: [(&str, u32); 3] =
    [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];
const CAP_SYS_ADMIN: u32 = 21;

fn missing_capabilities(status: &str) -> Option<MissingRequirement> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(line.trim(), 16).ok()?;
    let has = |bit: u32| effective >> bit & 1 == 1;
    // CAP_SYS_ADMIN includes the two capabilities that were split off from it.
    let lacks = |(_, bit): &&(&str, u32)| !has(*bit) && (*bit < 32 || !has(CAP_SYS_ADMIN));
    let lacking: Vec<_> = CAPABILITIES.iter().filter(lacks).map(|(name, _)| *name).collect();
    (!lacking.is_empty()).then(|| MissingRequirement {
        what: format!("permission ({})", lacking.join(", ")),
        remedy: "run as root, outside a container, or with these capabilities".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_reported() {
        assert_eq!(too_old("6.18.44-generic\n"), None);
        assert_eq!(too_old("6.4.0"), None);
        let remedy = too_old("6.1.0-38-amd64").unwrap().remedy;
        assert_eq!(remedy, "Linux 6.4 or later; this is 6.1.0-38-amd64");
    }

    #[test]
    fn missing_permissions_are_reported() {
        let status = |effective: u64| format!("Name:\tx\nCapEff:\t{effective:016x}\n");
        assert_eq!(missing_capabilities(&status(1 << 12 | 1 << 38 | 1 << 39)), None);
        assert_eq!(missing_capabilities(&status(1 << 12 | 1 << 21)), None);
        let what = |effective| missing_capabilities(&status(effective)).unwrap().what;
        assert_eq!(what(0), "permission (CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF)");
        assert_eq!(what(1 << 12 | 1 << 39), "permission (CAP_PERFMON)");
    }

    #[test]
    fn folders_that_are_not_control_groups_are_reported() {
        let missing = missing_requirements_for(&[Algorithm::Medx], Some(Path::new("/proc")));
        let what = "a control group, version 2, at /proc";
        assert!(missing.iter().any(|missing| missing.what == what), "{missing:?}");
        let missing = missing_requirements_for(&[Algorithm::Vegas], Some(Path::new("/proc")));
        assert!(
            missing.iter().all(|missing| missing.what != what),
            "only MEDX needs a control group"
        );
    }

    #[test]
    fn mounts_are_found_by_kind() {
        let mounts =
            "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount_of("cgroup2", mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mount_of("bpf", mounts), None);
    }
}
