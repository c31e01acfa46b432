//! Tests of the kernel's interfaces in namespaces of their own.

#![cfg(target_os = "linux")]

mod bridged_hosts;
mod classifier;
mod lease;
mod packet_offload;
mod packet_socket;
