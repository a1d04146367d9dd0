//! Traffic generators and recording sinks for tests, benches and users.

#[cfg(feature = "sink")]
pub mod metrics;
#[cfg(feature = "sink")]
mod protobuf;
#[cfg(feature = "sink")]
pub mod sink;
pub mod traffic;
