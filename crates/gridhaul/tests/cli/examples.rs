//! The examples of the libraries run as they are.

use std::error::Error;

#[path = "../../../gridhaul-core/examples/congestion-control.rs"]
mod congestion_control;
#[path = "../../../gridhaul-core/examples/connection.rs"]
mod connection;
#[path = "../../../gridhaul-core/examples/proxy.rs"]
mod proxy;
#[path = "../../examples/run.rs"]
mod run;
#[path = "../../examples/sweep.rs"]
mod sweep;

#[test]
fn a_scenario_runs_on_two_backends() -> Result<(), Box<dyn Error>> {
    run::main()
}

#[test]
fn two_keys_are_swept() -> Result<(), Box<dyn Error>> {
    sweep::main()
}

#[test]
fn two_endpoints_transfer_data_without_a_simulator() -> Result<(), Box<dyn Error>> {
    connection::main()
}

#[test]
fn a_congestion_control_of_a_user_is_driven_alone() {
    congestion_control::main();
}

#[test]
fn a_proxy_between_two_sockets_repairs_the_losses_of_the_second() -> Result<(), Box<dyn Error>> {
    proxy::main()
}
