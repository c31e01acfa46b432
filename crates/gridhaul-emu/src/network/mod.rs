//! The network of a run: who has which address, which node has which device, and the namespaces
//! that are made from it.

mod address;
mod plan;
mod shaper;
mod testbed;

pub(crate) use address::{Address, AddressFamily, FLOWS_MAX, FlowEnd, MEMBERS_MAX};
pub(crate) use plan::{FlowPlan, LinkDevice, Plan};
pub(crate) use testbed::Testbed;
