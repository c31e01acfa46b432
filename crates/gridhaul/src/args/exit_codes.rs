//! The text about exit codes at the end of `--help`.

/// The exit codes, for `--help`.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a check failed: a figure of a paper, '--must-agree' of compare, the limits of a plan
  2  invalid input or usage: the message names the file, the key and the remedy
  3  internal error: please report it as a bug
  4  the disk is full: earlier results are unchanged
130  interrupted (Ctrl-C, SIGTERM): 'run' and 'sweep' keep the finished results, 'plan' prints the \
best candidate so far";
