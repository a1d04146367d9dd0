//! Datagrams that the kernel dropped because the receive buffer of a socket was full.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;

/// The drop count of one UDP socket. The kernel tells it with each datagram, and in `/proc/net/udp` also what it dropped
/// after the last one.
#[derive(Debug)]
pub(crate) struct KernelDrops {
    /// Where to find the socket in the tables of the kernel.
    inode: Option<u64>,
    seen: Cell<u32>,
    total: Cell<u64>,
}

impl KernelDrops {
    pub(crate) fn of(socket: &impl AsRawFd) -> Self {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).ok();
        let inode = link.as_deref().and_then(|link| link.to_str()).and_then(|link| {
            link.strip_prefix("socket:[").and_then(|link| link.strip_suffix(']')).and_then(|inode| inode.parse().ok())
        });
        Self { inode, seen: Cell::new(0), total: Cell::new(0) }
    }

    /// Takes note of the kernel's count, which is a sum that wraps. A count older than the last one is ignored: a datagram
    /// may have waited for long.
    pub(super) fn see(&self, count: u32) {
        let more = count.wrapping_sub(self.seen.get());
        if more <= u32::MAX / 2 {
            self.seen.set(count);
            self.total.set(self.total.get() + u64::from(more));
        }
    }

    /// Asks the kernel; where there is no `/proc` this tells nothing new.
    pub(crate) fn look(&self) {
        let Some(inode) = self.inode else { return };
        let tables = ["/proc/net/udp", "/proc/net/udp6"];
        let found = tables
            .iter()
            .filter_map(|path| File::open(path).ok())
            .find_map(|table| drops(BufReader::new(table), inode));
        if let Some(count) = found {
            self.see(count);
        }
    }

    /// Datagrams dropped so far.
    pub(crate) fn total(&self) -> u64 {
        self.total.get()
    }
}

/// The `drops` column of the socket's line.
fn drops(table: impl BufRead, inode: u64) -> Option<u32> {
    let inode = inode.to_string();
    let line = table.lines().map_while(Result::ok).find(|line| line.split_ascii_whitespace().nth(9) == Some(&inode))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
impl KernelDrops {
    /// Knows only what the kernel tells with the datagrams.
    pub(super) fn without_table() -> Self {
        Self { inode: None, seen: Cell::new(0), total: Cell::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  512: 0100007F:1596 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 41 2 0000000000000000 0
 1024: 00000000:14EB 00000000:0000 07 00000000:00033C00 00:00000000 00000000     0        0 42 2 0000000000000000 4711
";

    #[test]
    fn the_table_of_the_kernel_is_read() {
        assert_eq!(drops(TABLE.as_bytes(), 42), Some(4_711));
        assert_eq!(drops(TABLE.as_bytes(), 43), None);
    }

    /// The count wraps, and does not go back.
    #[test]
    fn counts_wrap() {
        let drops = KernelDrops { inode: None, seen: Cell::new(u32::MAX - 1), total: Cell::new(10) };
        drops.see(3);
        assert_eq!(drops.total(), 15);
        drops.see(1);
        drops.see(3);
        assert_eq!(drops.total(), 15);
    }
}
