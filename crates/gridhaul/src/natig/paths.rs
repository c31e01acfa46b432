//! Paths from the control centre to the gateways of the substations.

use std::collections::VecDeque;

use super::network::Network;

/// The nodes of a path, the control centre first.
pub(super) type Path = Vec<usize>;

/// The shortest path to each node; of several, that over the nodes listed first.
pub(super) fn shortest(network: &Network) -> Vec<Option<Path>> {
    let mut paths: Vec<Option<Path>> = vec![None; network.nodes];
    paths[network.control] = Some(vec![network.control]);
    let mut next = VecDeque::from([network.control]);
    while let Some(node) = next.pop_front() {
        let path = paths[node].clone().unwrap_or_default();
        for (peer, known) in paths.iter_mut().enumerate() {
            if known.is_none() && network.link(node, peer).is_some() {
                *known = Some([&path[..], &[peer]].concat());
                next.push_back(peer);
            }
        }
    }
    paths
}

/// The paths to a gateway over at most one further gateway, the direct one first. These are the
/// 121 paths of the mesh with eleven substations.
pub(super) fn with_detours(network: &Network, gateway: usize) -> Vec<Path> {
    let control = network.control;
    let joined = |from: usize, to: usize| network.link(from, to).is_some();
    let direct = joined(control, gateway).then(|| vec![control, gateway]);
    let detours = (0..network.substations.len())
        .filter(|&via| via != gateway && joined(control, via) && joined(via, gateway))
        .map(|via| vec![control, via, gateway]);
    direct.into_iter().chain(detours).collect()
}
