//! `gridhaul model`: what the equations are made of.

use anyhow::bail;
use gridhaul_core::tcp::StackParams;
use gridhaul_model::ModelRules;
use gridhaul_model::chain::Chain;
use gridhaul_model::chain::aggregator::{AggregatorTcp, Control, WanConditions, aggregator};
use gridhaul_model::chain::meter::{Conditions, Demand, MeterTcp, Restart, Timer, paper, refined};
use gridhaul_model::queue::Mm1b;
use gridhaul_scenario::scenario::{Profile, Stack};

use super::error::CommandError;
use crate::args::{ChainArgs, ChainFormat, ChainOf, ChainRules, ChainVariant, ModelCommand};
use crate::terminal::print;

/// Shows a part of the model.
pub(crate) fn run(command: &ModelCommand) -> Result<(), CommandError> {
    match command {
        ModelCommand::Chain(args) => chain(args),
    }
}

fn chain(args: &ChainArgs) -> Result<(), CommandError> {
    check(args)?;
    let chain = match args.of {
        ChainOf::Meter => meter(args),
        ChainOf::Collector => collecting(args),
    };
    let text = match args.format {
        ChainFormat::Table => chain.to_table(),
        ChainFormat::Dot => chain.to_dot(),
        ChainFormat::Mermaid => chain.to_mermaid(),
    };
    Ok(print(&text)?)
}

/// Rates are one over these times.
fn check(args: &ChainArgs) -> anyhow::Result<()> {
    let times =
        [("--rtt", args.rtt), ("--on", args.on), ("--off", args.off), ("--service", args.service)];
    for (flag, time) in times {
        if time.is_zero() {
            bail!("{flag} {time}: a rate is one over this time\n  help: give more than zero");
        }
    }
    if args.of == ChainOf::Meter && args.window.is_some_and(|window| window > 2) {
        bail!("--window: the chain of a meter has one or two segments\n  help: give 1 or 2");
    }
    Ok(())
}

/// The meter of paper `sa-tcp`.
fn meter(args: &ChainArgs) -> Chain {
    let tcp = MeterTcp {
        vegas: args.congestion_control == ChainVariant::Vegas,
        window: args.window.unwrap_or(2),
        timer: timer(),
        restart: match (args.no_restart, args.congestion_control) {
            (true, _) => Restart::Never,
            (false, ChainVariant::Reno) => Restart::OneSegment { from_ack: true },
            (false, ChainVariant::Vegas) => Restart::TimerRunsOn,
        },
    };
    let demand = Demand::Greedy { on: args.on.as_secs_f64(), off: args.off.as_secs_f64() };
    // Losses of a given share are independent.
    let (loss, rtt) = (args.loss.ratio(), args.rtt.as_secs_f64());
    let conditions = Conditions { loss, rtt, pairing: 0.0, variation: 0.0 };
    match args.rules {
        ChainRules::Paper => paper(&tcp, &demand, &conditions, 0.0),
        ChainRules::Refined => refined(&tcp, &demand, &conditions, 0.0),
    }
}

/// The collector of paper `sa-tcp`; a = 1 and b = 3, as there.
fn collecting(args: &ChainArgs) -> Chain {
    let control = match args.congestion_control {
        ChainVariant::Reno => Control::Reno { recovers_multiple_losses: false },
        ChainVariant::Vegas => Control::Vegas { alpha: 1.0, beta: 3.0 },
    };
    let tcp = AggregatorTcp { control, window: args.window.unwrap_or(8), timer: timer() };
    let queue = Mm1b::new(args.load.ratio(), args.queue.saturating_add(1))
        .expect("a share is a possible load, and there is room for a packet");
    let (service, base) = (args.service.as_secs_f64(), args.rtt.as_secs_f64());
    let rtt = base + (queue.sojourn() - 1.0) * service;
    let wan = WanConditions { loss: args.loss.ratio(), rtt, base, delay: queue.delay(), service };
    let rules = match args.rules {
        ChainRules::Paper => ModelRules::Paper,
        ChainRules::Refined => ModelRules::Refined,
    };
    aggregator(&tcp, &wan, rules)
}

/// The timer of the profile `ns2`, which the paper used.
fn timer() -> Timer {
    let stack = StackParams::resolve(&Stack { profile: Profile::Ns2, ..Stack::default() });
    Timer {
        min: stack.rto_min.as_secs_f64(),
        max: stack.rto_max.as_secs_f64(),
        floor_on_variance: stack.rto_floor_on_variance,
        timestamps: stack.timestamps,
    }
}
