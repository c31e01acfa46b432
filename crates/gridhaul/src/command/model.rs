//! `gridhaul model`: what the equations are made of.

use anyhow::bail;
use gridhaul_core::tcp::StackParams;
use gridhaul_model::chain::meter::{Conditions, Demand, MeterTcp, Restart, Timer, paper, refined};
use gridhaul_scenario::scenario::{Profile, Stack};

use crate::args::{ChainArgs, ChainFormat, ChainOf, ChainRules, ChainVariant, ModelCommand};
use crate::failure::Failure;
use crate::terminal::print;

/// Shows a part of the model.
pub(crate) fn run(command: &ModelCommand) -> Result<(), Failure> {
    match command {
        ModelCommand::Chain(args) => chain(args),
    }
}

fn chain(args: &ChainArgs) -> Result<(), Failure> {
    check(args)?;
    let chain = match args.of {
        ChainOf::Meter => meter(args),
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
    for (flag, time) in [("--rtt", args.rtt), ("--on", args.on), ("--off", args.off)] {
        if time.is_zero() {
            bail!("{flag} {time}: a rate is one over this time\n  help: give more than zero");
        }
    }
    Ok(())
}

/// The meter of paper `sa-tcp`, with the timer of the profile `ns2`, which the paper used.
fn meter(args: &ChainArgs) -> gridhaul_model::chain::Chain {
    let stack = Stack { profile: Profile::Ns2, ..Stack::default() };
    let stack = StackParams::resolve(&stack);
    let tcp = MeterTcp {
        vegas: args.variant == ChainVariant::Vegas,
        window: args.window,
        timer: Timer {
            min: stack.rto_min.as_secs_f64(),
            max: stack.rto_max.as_secs_f64(),
            floor_on_variance: stack.rto_floor_on_variance,
            timestamps: stack.timestamps,
        },
        restart: match (args.no_restart, args.variant) {
            (true, _) => Restart::Never,
            (false, ChainVariant::Reno) => Restart::OneSegment { from_ack: true },
            (false, ChainVariant::Vegas) => Restart::TimerRunsOn,
        },
    };
    let demand = Demand::Greedy { on: args.on.as_secs_f64(), off: args.off.as_secs_f64() };
    // Losses of a given share are independent.
    let (loss, rtt) = (args.loss.ratio(), args.rtt.as_secs_f64());
    let conditions = Conditions { loss, rtt, pairing: 0.0 };
    match args.rules {
        ChainRules::Paper => paper(&tcp, &demand, &conditions, 0.0),
        ChainRules::Refined => refined(&tcp, &demand, &conditions, 0.0),
    }
}
