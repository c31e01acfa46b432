//! The commands.

pub(crate) mod agent;
pub(crate) mod corruption;
pub(crate) mod efficiency;
pub(crate) mod matrix;
pub(crate) mod measure;
mod observer;
pub(crate) mod reserve;
pub(crate) mod sync;

use std::panic::PanicHookInfo;

use crate::terminal::say;

/// Exit code of a check that failed: an application class that is not met or not decidable, or a run that ended early.
pub(crate) const CHECK: u8 = 1;

/// Exit code of invalid input or a missing feature of the machine.
pub(crate) const INVALID_INPUT: u8 = 2;

/// Exit code of a defect of this program.
const INTERNAL: u8 = 3;

/// Exit code after Ctrl-C or SIGTERM: 128 + SIGINT, the convention of shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit codes, for `--help`: those of `gridhaul`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a check failed: the application class of --class is not met, or the messages do not decide it;
     or the run ended early, and the messages until then are counted
  2  invalid input or usage, or a missing feature of the machine: the message names the remedy
  3  internal error: please report it as a bug
130  interrupted (Ctrl-C, SIGTERM); the messages until then are counted";

/// Reports a panic, which is a defect of this program, in one line without a backtrace, and exits.
pub(crate) fn on_panic(info: &PanicHookInfo<'_>) {
    say(format_args!("{}", gridhaul::panic_message(info)));
    std::process::exit(INTERNAL.into());
}
