//! The functions of the module: a caller writes a request at `input`, calls `answer`, and reads
//! the content of the answer at `output`.

use std::cell::RefCell;

use crate::page_module::PageModule;

#[derive(Default)]
struct Exchange {
    module: PageModule,
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
}

fn exchange<T>(access: impl FnOnce(&mut Exchange) -> T) -> T {
    EXCHANGE.with(|exchange| access(&mut exchange.borrow_mut()))
}

/// The place of the next request, whose length is given.
#[unsafe(no_mangle)]
extern "C" fn input(length: usize) -> *mut u8 {
    exchange(|exchange| {
        exchange.input.resize(length, 0);
        exchange.input.as_mut_ptr()
    })
}

/// Answers the request. Returns the status of HTTP.
#[unsafe(no_mangle)]
extern "C" fn answer() -> u32 {
    exchange(|exchange| {
        let response = exchange.module.answer(&exchange.input);
        exchange.output = response.body;
        let code = response.status.split(' ').next();
        code.and_then(|code| code.parse().ok()).unwrap_or(500)
    })
}

/// The content of the latest answer.
#[unsafe(no_mangle)]
extern "C" fn output() -> *const u8 {
    exchange(|exchange| exchange.output.as_ptr())
}

/// The length of the content of the latest answer.
#[unsafe(no_mangle)]
extern "C" fn output_length() -> usize {
    exchange(|exchange| exchange.output.len())
}
