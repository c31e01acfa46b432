//! `gridhaul model`: parts of the analytical model.

use anyhow::bail;
use gridhaul_cli::print;
use gridhaul_core::tcp::StackParams;
use gridhaul_model::ModelRules;
use gridhaul_model::chain::Chain;
use gridhaul_model::chain::aggregator::{AggregatorTcp, Control, WanConditions, aggregator};
use gridhaul_model::chain::meter::{Conditions, Demand, MeterTcp, Restart, Timer, paper, refined};
use gridhaul_model::queue::Mm1b;
use gridhaul_scenario::scenario::{Profile, Stack};

use super::error::CommandError;
use crate::args::{
    ChainArgs, ChainCongestionControl, ChainFormat, ChainNode, ChainRules, ModelCommand,
};

/// Prints a part of the model.
pub(crate) fn run(command: &ModelCommand) -> Result<(), CommandError> {
    match command {
        ModelCommand::Chain(args) => chain(args),
    }
}

fn chain(args: &ChainArgs) -> Result<(), CommandError> {
    check(args)?;
    let chain = match args.of {
        ChainNode::Meter => meter(args),
        ChainNode::Aggregator => aggregator_chain(args),
    };
    let text = match args.format {
        ChainFormat::Table => chain.to_table(),
        ChainFormat::Dot => chain.to_dot(),
        ChainFormat::Mermaid => chain.to_mermaid(),
    };
    Ok(print(&text)?)
}

/// Checks the values that the types of the arguments allow and the chains do not.
fn check(args: &ChainArgs) -> anyhow::Result<()> {
    let times =
        [("--rtt", args.rtt), ("--on", args.on), ("--off", args.off), ("--service", args.service)];
    for (flag, time) in times {
        if time.is_zero() {
            bail!(
                "{flag} {time}: expected a time greater than zero\n  help: give a time such as '10 \
                 ms'"
            );
        }
    }
    if args.of == ChainNode::Meter && args.window.is_some_and(|window| window > 2) {
        bail!(
            "--window: the chain of a meter has a maximum window of 1 or 2 segments\n  help: give \
             1 or 2"
        );
    }
    Ok(())
}

/// The meter of paper `sa-tcp`.
fn meter(args: &ChainArgs) -> Chain {
    let tcp = MeterTcp {
        vegas: args.congestion_control == ChainCongestionControl::Vegas,
        window: args.window.unwrap_or(2),
        timer: timer(),
        restart: match (args.no_restart, args.congestion_control) {
            (true, _) => Restart::Never,
            (false, ChainCongestionControl::Reno) => Restart::OneSegment { from_ack: true },
            (false, ChainCongestionControl::Vegas) => Restart::TimerRunsOn,
        },
    };
    let demand = Demand::Greedy { on: args.on.as_secs_f64(), off: args.off.as_secs_f64() };
    // The losses are independent Bernoulli trials: no pairing, no variation.
    let (loss, rtt) = (args.loss.ratio(), args.rtt.as_secs_f64());
    let conditions = Conditions { loss, rtt, pairing: 0.0, variation: 0.0, window_closed: 0.0 };
    match args.rules {
        ChainRules::Paper => paper(&tcp, &demand, &conditions, 0.0),
        ChainRules::Refined => refined(&tcp, &demand, &conditions, 0.0),
    }
}

/// The aggregator of paper `sa-tcp` (its "collector"), with the paper's Vegas parameters a = 1 and
/// b = 3.
fn aggregator_chain(args: &ChainArgs) -> Chain {
    let control = match args.congestion_control {
        ChainCongestionControl::Reno => Control::Reno { recovers_multiple_losses: false },
        ChainCongestionControl::Vegas => Control::Vegas { alpha: 1.0, beta: 3.0 },
    };
    let tcp = AggregatorTcp { control, window: args.window.unwrap_or(8), timer: timer() };
    let queue = Mm1b::new(args.load.ratio(), args.queue.saturating_add(1))
        .expect("the utilisation is a probability, and the queue holds at least one packet");
    let (service, base) = (args.service.as_secs_f64(), args.rtt.as_secs_f64());
    let rtt = base + (queue.sojourn() - 1.0) * service;
    let wan = WanConditions { loss: args.loss.ratio(), rtt, base, delay: queue.delay(), service };
    let rules = match args.rules {
        ChainRules::Paper => ModelRules::Paper,
        ChainRules::Refined => ModelRules::Refined,
    };
    aggregator(&tcp, &wan, rules)
}

/// The retransmission timer of profile `ns2`, the simulator of the paper.
fn timer() -> Timer {
    let stack = StackParams::resolve(&Stack { profile: Profile::Ns2, ..Stack::default() });
    Timer {
        min: stack.rto_min.as_secs_f64(),
        max: stack.rto_max.as_secs_f64(),
        floor_on_variance: stack.rto_floor_on_variance,
        timestamps: stack.timestamps,
    }
}
