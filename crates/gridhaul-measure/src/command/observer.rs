//! Progress of measurements on the terminal.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

use gridhaul_cli::say;
use gridhaul_cli::signal::on_signal;
use gridhaul_measure::run::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows the progress on standard error, and ends measurements when the user interrupts.
#[derive(Debug)]
pub(super) struct TerminalObserver {
    interrupted: Arc<AtomicBool>,
    is_quiet: bool,
    /// Whether the messages of each run have a progress bar.
    has_bar: bool,
    bar: RefCell<Option<ProgressBar>>,
}

impl TerminalObserver {
    /// An observer that Ctrl-C and SIGTERM interrupt. To be called once in the program.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub(super) fn new(is_quiet: bool) -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&interrupted);
        on_signal(move || set.store(true, Ordering::Relaxed))?;
        Ok(Self { interrupted, is_quiet, has_bar: !is_quiet, bar: RefCell::new(None) })
    }

    /// The same without progress bars, for many short runs.
    pub(super) fn without_bars(self) -> Self {
        Self { has_bar: false, ..self }
    }

    /// Whether the user has interrupted the program.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Observer for TerminalObserver {
    fn stop(&self) -> &AtomicBool {
        &self.interrupted
    }

    fn on_start(&self, messages: u64) {
        let target = if self.has_bar {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} messages, {eta} left");
        let bar = ProgressBar::with_draw_target(Some(messages), target);
        bar.enable_steady_tick(time::Duration::from_millis(500));
        let bar = match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        self.bar.replace(Some(bar));
    }

    fn on_sent(&self, messages: u64) {
        if let Some(bar) = &*self.bar.borrow() {
            bar.set_position(messages);
        }
    }

    fn on_end(&self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn on_note(&self, note: &str) {
        if !self.is_quiet {
            say(format_args!("{note}"));
        }
    }

    fn on_failure(&self, failure: &str) {
        say(format_args!("{failure}"));
    }
}
