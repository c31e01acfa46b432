//! The command line from outside: the built program, an empty folder, exit codes and texts.

mod broken;
mod documents;
mod help;
mod plan;
mod model;
mod run;
mod support;
