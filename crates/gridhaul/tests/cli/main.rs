//! The command line from outside: the built program, an empty folder, exit codes and texts.

mod agreement;
mod broken;
mod documents;
mod emu;
mod help;
mod kernel;
mod model;
mod output;
mod plan;
mod planned;
mod robust;
mod run;
mod statistics;
mod support;
mod warnings;
