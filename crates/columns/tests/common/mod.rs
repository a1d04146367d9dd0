//! Templates, sessions and payloads of SONiC telemetry, made here; and reading metrics back.
#![allow(dead_code, reason = "each test file uses some of it")]

pub mod read;
pub mod sonic;

#[allow(unused_imports, reason = "each test file uses some of it")]
pub use sonic::*;
