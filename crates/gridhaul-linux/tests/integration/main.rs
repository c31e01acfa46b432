//! Tests of the kernel's interfaces in namespaces of their own.

#![cfg(target_os = "linux")]

mod classifier;
mod packet_socket;
