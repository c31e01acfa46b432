//! The report of a panic, which is a defect of gridhaul.

use std::panic::PanicHookInfo;

use crate::exit_code::INTERNAL_ERROR;
use crate::output::say;

/// Reports a panic in one line without a backtrace, and exits. For [`std::panic::set_hook`].
pub fn report_panic(info: &PanicHookInfo<'_>) {
    say(format_args!("{}", message(info)));
    std::process::exit(INTERNAL_ERROR.into());
}

fn message(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
    let text = info.payload().downcast_ref::<&str>().copied();
    let owned = info.payload().downcast_ref::<String>().map(String::as_str);
    let message = text.or(owned).unwrap_or("no message");
    format!("internal error, please report it as a bug: {message}{place}")
}
