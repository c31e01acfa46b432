//! Paths of the flows that pass nodes with equal-cost multipath.

use std::borrow::Cow;

use gridhaul_core::random::RandomStream;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Flow, Hop, Scenario};

use super::{MemberSeed, route, share_route};
use crate::aggregation::FirstStage;
use crate::layout::Layout;

/// Nodes with equal-cost multipath in a network with MTUs: the segment size of a connection would
/// have to fit every path.
pub(crate) fn unsupported_paths(scenario: &Scenario) -> Vec<Unsupported> {
    let limits_segments = scenario.has_mtu() || scenario.clamps_mss();
    let unsupported = scenario.ecmp_keys().filter(|_| limits_segments).map(|key| Unsupported {
        key,
        reason: "the segment size is not compared with the MTU of each path; remove `ecmp`, or \
                 `mtu` and `mss_clamp` from the links"
            .to_owned(),
    });
    unsupported.collect()
}

/// The hops of a path, and those between which its flows are distributed.
#[derive(Debug)]
pub(super) struct EqualPaths<'p> {
    path: &'p [Hop],
    /// The equal hops of each place of the path; empty if no place has several.
    equal: Vec<Vec<Hop>>,
}

impl<'p> EqualPaths<'p> {
    /// The paths of flows with this one. A path that a flow requests is `given`, and the only one.
    pub(super) fn new(scenario: &Scenario, path: &'p [Hop], is_given: bool) -> Self {
        let equal: Vec<_> = path.iter().map(|hop| scenario.equal_hops(*hop)).collect();
        let is_single = is_given || equal.iter().all(|hops| hops.len() < 2);
        Self { path, equal: if is_single { Vec::new() } else { equal } }
    }

    /// The path of a flow. Addresses and ports of flows are arbitrary, so that their hash is
    /// random.
    pub(super) fn select(&self, hash: impl FnOnce() -> RandomStream) -> Cow<'p, [Hop]> {
        if self.equal.is_empty() {
            return Cow::Borrowed(self.path);
        }
        let mut hash = hash();
        let hops = self.equal.iter().map(|hops| hops[hash.below(hops.len() as u64) as usize]);
        Cow::Owned(hops.collect())
    }
}

/// The routes of the flows of a row, to the `to` end and back.
#[derive(Debug)]
pub(super) struct RowRoutes<'p> {
    paths: [EqualPaths<'p>; 2],
    /// The proxies on each path.
    proxies: [Vec<(usize, u32)>; 2],
    /// Where the routes of the last member begin in the list of routes.
    starts: [u32; 2],
}

impl<'p> RowRoutes<'p> {
    pub(super) fn new(
        scenario: &Scenario,
        flow: &Flow,
        stage: &'p FirstStage,
        proxies: [Vec<(usize, u32)>; 2],
    ) -> Self {
        let paths = [
            EqualPaths::new(scenario, &stage.forward, flow.route.is_some()),
            EqualPaths::new(scenario, &stage.reverse, flow.reverse_route.is_some()),
        ];
        Self { paths, proxies, starts: [u32::MAX; 2] }
    }

    /// Where the routes of a member of a group of this size begin in the list of routes.
    pub(super) fn of_member(
        &mut self,
        seed: &MemberSeed<'_>,
        (layout, group): (&Layout, u64),
        routes: &mut Vec<u32>,
    ) -> [u32; 2] {
        let paths = self.paths.iter().zip(&self.proxies).zip(["path", "reverse path"]);
        for (start, ((path, proxies), purpose)) in self.starts.iter_mut().zip(paths) {
            let hops = path.select(|| seed.stream(purpose));
            let directions = layout.directions.of(&hops, seed.number % group, group);
            *start = share_route(routes, *start, &route(directions, proxies));
        }
        self.starts
    }
}
