//! The network of a run: who has which address, which node has which device, and the namespaces
//! that are made from it.

mod address;
mod lab;
mod plan;
mod shaper;

pub(crate) use address::{Address, FLOWS_MAX, Family, MEMBERS_MAX, Side};
pub(crate) use lab::Lab;
pub(crate) use plan::{FlowPlan, Plan, Port};
