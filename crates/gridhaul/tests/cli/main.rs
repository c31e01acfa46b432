//! Tests of the command line: each runs the built program in an empty folder and checks exit code,
//! output and files.

mod agreement;
mod documents;
mod emu;
mod examples;
mod explain;
mod explore;
mod export;
mod help;
mod import;
mod invalid_input;
mod kernel;
mod messages;
mod model;
mod output;
mod plan;
mod planned;
mod program;
mod results_folder;
mod robust;
mod run;
mod statistics;
mod support;
mod sweep;
mod warnings;
