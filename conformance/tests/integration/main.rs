//! Tests of the simulator and the analytical model, compared with ns-2, formulas and each other.

mod kernel_margins;
mod model_answers;
mod model_grid;
mod ns2_grid;
mod ns2_meters;
mod ns2_pairs;
mod ns2_replay;
mod power_lines;
mod properties;
mod proxies;
mod queues;
mod upstream_losses;
