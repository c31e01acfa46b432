//! Tests of the analysis on captures with a known cause.

mod causes;
mod files;
mod handshake;
mod kernel;
mod links;
mod recording;
mod recordings;
mod support;
mod transfers;
