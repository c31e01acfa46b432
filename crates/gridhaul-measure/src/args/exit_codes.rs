//! The exit codes in `--help`.

/// The exit codes, for `--help`: those of `gridhaul`.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a check failed: the application class of --class is not met, or the messages do not decide it;
     or the run ended early, and the messages until then are counted
  2  invalid input or usage, or a missing feature of the machine: the message names the remedy
  3  internal error: please report it as a bug
130  interrupted (Ctrl-C, SIGTERM); the messages until then are counted";
