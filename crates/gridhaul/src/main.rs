//! The program `gridhaul`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gridhaul::command_line::run(std::env::args_os()))
}
