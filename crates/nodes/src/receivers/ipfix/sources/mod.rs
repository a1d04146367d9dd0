//! Inputs of SONiC's telemetry that are no network sockets: its stream from the kernel, and the telemetry sessions,
//! without which the stream cannot be read, from its database or from files.
//!
//! Each source is a task that runs until it is told to stop, hands what it finds to a callback, and keeps counters.

pub(super) mod files;
pub(super) mod netlink;
pub(super) mod redis;
pub(super) mod unix;

use catchment_ipfix::sonic::SessionRow;
use otel_arrow_dfe_config::error::Error;

use crate::config;

/// A change of the telemetry sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionUpdate {
    /// A session is new, or not as it was.
    Set {
        /// `<profile>|<group>`: the row's key without its table.
        key: String,
        /// All of the row.
        row: SessionRow,
    },
    /// A session is gone.
    Remove {
        /// As in [`SessionUpdate::Set`].
        key: String,
    },
}

/// Checks that a source of which there can be one (`netlink`, `unix`) is not on several cores: the kernel gives each
/// member of a group all of its datagrams, and a path has one socket.
///
/// # Errors
/// Names the source and what would be right.
pub(super) fn check_cores(source: &str, cores: usize) -> Result<(), Error> {
    if cores > 1 {
        return Err(config::invalid(format!(
            "config.{source}: this pipeline runs on {cores} cores and each would want all of it; \
             expected policies.resources.core_allocation: {{type: core_count, count: 1}}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One core is enough, and more are too many.
    #[test]
    fn one_core() {
        assert!(check_cores("netlink", 1).is_ok());
        let error = check_cores("netlink", 2).expect_err("refused").to_string();
        assert!(error.contains("config.netlink") && error.contains("2 cores") && error.contains("count: 1"), "{error}");
    }
}
