//! Model checking of a chain of two proxies with at most one crash, for each kind of proxy.
//!
//! The models do not prove that the code follows the rules; the property tests of `pep` test the
//! code.

mod chain;
mod reflect;
mod spoof;

use std::marker::PhantomData;

use stateright::{Checker, Model};

use self::chain::{Chain, Rules};

fn check<R: Rules>() {
    let checker = Chain::<R>(PhantomData).checker().spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    println!("{} states", checker.unique_state_count());
}
