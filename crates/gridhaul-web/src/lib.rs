//! The page of `gridhaul explore` without a server, for the documentation site: the answers of a
//! server as a WebAssembly module ([`PageModule`]). The program `gridhaul-web` makes the page
//! around the module, and compares the answers of the module with those of the native code.
//!
//! The module has simulator, equations and the explorer. It has no clock, no threads and no
//! files, and imports nothing: memory and four functions are its interface (`exports.rs`).

#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]

mod page_module;

#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "exported functions have names that the linker must not change")]
mod exports;

pub use page_module::PageModule;
