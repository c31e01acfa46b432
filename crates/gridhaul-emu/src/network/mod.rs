//! The network of a run: addresses, devices, routes, and the namespaces that are created from them.

mod address;
mod flow_layout;
mod link_device;
mod nat;
mod plan;
mod ports;
mod proxies;
mod relays;
mod routers;
mod shaper;
mod testbed;

pub(crate) use address::{Address, AddressFamily, FLOWS_MAX, MEMBERS_MAX};
pub(crate) use flow_layout::FlowLayout;
pub(crate) use link_device::LinkDevice;
pub(crate) use plan::NetworkPlan;
pub(crate) use ports::{aggregator_port, server_port};
pub(crate) use proxies::{ProxyLayout, ServedFlow};
pub(crate) use relays::RelayLayout;
pub(crate) use routers::RouterLayout;
pub(crate) use testbed::Testbed;
