//! Congestion control that a run brings into the kernel: our own Vegas and MEDX, for as long as the
//! run takes.

use std::fs::File;
use std::os::fd::AsFd;

use gridhaul_cc::{Algorithm, ConnectionCounters, Loaded, MedxSettings, Settings, VegasSettings};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{Transport, Variant};
use socket2::Socket;

use crate::fault::Fault;
use crate::network::Plan;

/// What was loaded, and goes when this does.
#[derive(Debug)]
pub struct Controls {
    loaded: Option<Loaded>,
    /// Names in the kernel are the machine's: runs that load something wait for each other.
    _turn: Option<File>,
}

impl Controls {
    /// Loads what the flows of a plan need and this kernel does not have.
    pub(crate) fn load(plan: &Plan) -> Result<Self, Fault> {
        let tcp = plan.flows.iter().filter(|flow| flow.transport == Transport::Tcp);
        Self::for_stacks(tcp.flat_map(|flow| &flow.stacks))
    }

    /// Loads what these stacks need and this kernel does not have; of stacks that set the parameters
    /// of one algorithm differently, the last has its way.
    ///
    /// # Errors
    /// What this machine lacks, or the kernel refuses.
    pub fn for_stacks<'a>(
        stacks: impl IntoIterator<Item = &'a StackParams>,
    ) -> Result<Self, Fault> {
        let mut settings = Settings::default();
        let mut algorithms = Vec::new();
        for stack in stacks {
            match stack.variant {
                Variant::Vegas => {
                    settings.vegas = vegas(stack).expect("others were refused");
                    algorithms.push(Algorithm::Vegas);
                }
                Variant::Medx => {
                    settings.medx = medx(stack);
                    algorithms.push(Algorithm::Medx);
                }
                _ => {}
            }
        }
        if algorithms.is_empty() {
            return Ok(Self { loaded: None, _turn: None });
        }
        let turn = gridhaul_cc::take_turn()
            .map_err(Fault::call("waiting for another run's algorithms"))?;
        let loaded = Loaded::load(&algorithms, &settings).map_err(Fault::Control)?;
        Ok(Self { loaded: Some(loaded), _turn: Some(turn) })
    }

    /// What MEDX has judged on the connection of this socket.
    pub(crate) fn judgements(&self, socket: &Socket) -> Option<ConnectionCounters> {
        self.loaded.as_ref()?.connection(socket.as_fd()).ok()?
    }
}

/// Parameters of Vegas for the kernel, which counts in whole segments.
pub(crate) fn vegas(stack: &StackParams) -> Option<VegasSettings> {
    let whole = |number: f64| {
        ((0.0..=1e6).contains(&number) && number.fract() == 0.0).then_some(number as u32)
    };
    let (alpha, beta, gamma) = *stack.vegas;
    Some(VegasSettings { alpha: whole(alpha)?, beta: whole(beta)?, gamma: whole(gamma)? })
}

/// Parameters of MEDX.
pub(crate) fn medx(stack: &StackParams) -> MedxSettings {
    let (alpha, beta, buffer) = stack.medx;
    MedxSettings { alpha, beta, buffer }
}
