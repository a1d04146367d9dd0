//! What /proc says about a process and the machine.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use super::ProcessError;

/// CPU time of all threads of a process so far, user and system, also of those that have ended. The clock of the
/// process tells it finer than the ticks of /proc/PID/stat, of which a short run has few.
pub(super) fn cpu_time(id: u32) -> Result<Duration, ProcessError> {
    let none = || nix::errno::Errno::ESRCH;
    let clock = i32::try_from(id).map_err(|_| none()).and_then(|id| clock_getcpuclockid(Pid::from_raw(id)));
    let time = clock.and_then(ClockId::now).map_err(io::Error::from);
    time.map(Duration::from).map_err(ProcessError::io("read the CPU time of the engine"))
}

/// CPU time of this thread so far.
pub(crate) fn thread_time() -> Result<Duration, ProcessError> {
    let time = ClockId::CLOCK_THREAD_CPUTIME_ID.now().map_err(io::Error::from);
    time.map(Duration::from).map_err(ProcessError::io("read the CPU time of this thread"))
}

/// Resident sizes of a process, in MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Memory {
    /// Now.
    pub(super) rss_mib: f64,
    /// The largest so far.
    pub(super) peak_rss_mib: f64,
}

/// Memory of a process.
pub(super) fn memory(id: u32) -> Result<Memory, ProcessError> {
    let path = format!("/proc/{id}/status");
    let text = fs::read_to_string(&path).map_err(ProcessError::io("read the memory of the engine"))?;
    parse_memory(&text).ok_or(ProcessError::Proc { path, what: "VmHWM and VmRSS" })
}

/// Resident size of this process, in MiB.
pub(crate) fn resident_mib() -> Result<f64, ProcessError> {
    memory(std::process::id()).map(|memory| memory.rss_mib)
}

fn parse_memory(status: &str) -> Option<Memory> {
    let mib = |key: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: u32 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        Some(f64::from(kib) / 1024.0)
    };
    Some(Memory { rss_mib: mib("VmRSS:")?, peak_rss_mib: mib("VmHWM:")? })
}

/// Datagrams that the kernel dropped at the IPv4 UDP sockets of a port so far; `None` if there is no socket.
pub(crate) fn udp_drops(port: u16) -> Option<u64> {
    parse_udp_drops(&fs::read_to_string("/proc/net/udp").ok()?, port)
}

/// The columns are those of proc_net_tcp, with the drops as the last.
fn parse_udp_drops(table: &str, port: u16) -> Option<u64> {
    let drops = |line: &str| line.split_ascii_whitespace().last()?.parse::<u64>().ok();
    table.lines().filter(|line| port_of(line, 1) == Some(port)).filter_map(drops).reduce(|a, b| a + b)
}

/// Bytes that wait at the IPv4 UDP sockets of a port to be read; `None` if there is no socket.
pub(crate) fn udp_unread(port: u16) -> Option<u64> {
    parse_udp_unread(&fs::read_to_string("/proc/net/udp").ok()?, port)
}

fn parse_udp_unread(table: &str, port: u16) -> Option<u64> {
    let unread = |line: &str| {
        let (_, to_read) = line.split_ascii_whitespace().nth(4)?.split_once(':')?;
        u64::from_str_radix(to_read, 16).ok()
    };
    table.lines().filter(|line| port_of(line, 1) == Some(port)).filter_map(unread).reduce(|a, b| a + b)
}

/// Size of the receive buffer of a UDP socket of a port as `ss` tells it, in bytes; `None` if it does not.
pub(crate) fn udp_receive_buffer(port: u16) -> Option<u64> {
    let output = Command::new("ss").args(["-H", "-u", "-a", "-n", "-m", "sport", "="]).arg(format!(":{port}")).output();
    parse_receive_buffer(&String::from_utf8_lossy(&output.ok()?.stdout))
}

/// `skmem:(r0,rb212992,...)`.
fn parse_receive_buffer(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("skmem:(")?;
    rest.split([',', ')']).find_map(|item| item.strip_prefix("rb"))?.parse().ok()
}

/// Processes that a process has started, and those that they have.
pub(super) fn descendants(id: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let children = children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok());
    children.flat_map(|child| std::iter::once(child).chain(descendants(child))).collect()
}

/// Bytes that senders have written to IPv4 connections to a port of this machine and that have not been read: in the
/// sockets of both ends.
pub(crate) fn tcp_unread(port: u16) -> Result<u64, ProcessError> {
    let table = fs::read_to_string("/proc/net/tcp").map_err(ProcessError::io("read the table of connections"))?;
    Ok(parse_tcp_unread(&table, port))
}

/// The columns are those of proc_net_tcp: state 0A listens, and its queues hold connections instead of bytes.
fn parse_tcp_unread(table: &str, port: u16) -> u64 {
    let unread = |line: &str| {
        let mut columns = line.split_ascii_whitespace().skip(3);
        let (state, queues) = (columns.next()?, columns.next()?);
        let (to_send, to_read) = queues.split_once(':')?;
        let queue = if port_of(line, 1) == Some(port) {
            to_read
        } else if port_of(line, 2) == Some(port) {
            to_send
        } else {
            return None;
        };
        (state != "0A").then(|| u64::from_str_radix(queue, 16).ok())?
    };
    table.lines().filter_map(unread).sum()
}

/// The port in a column of addresses: 1 is the local one, 2 the remote.
fn port_of(line: &str, column: usize) -> Option<u16> {
    let (_, port) = line.split_ascii_whitespace().nth(column)?.split_once(':')?;
    u16::from_str_radix(port, 16).ok()
}

/// Name of the processor, or `unknown`.
pub(crate) fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    parse_cpu_model(&text).unwrap_or("unknown").to_owned()
}

fn parse_cpu_model(cpuinfo: &str) -> Option<&str> {
    let (_, name) =
        cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == "model name")?;
    Some(name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories() {
        let status = "Name:\tcatchment\nVmPeak:\t  999 kB\nVmHWM:\t   55296 kB\nVmRSS:\t   40960 kB\n";
        assert_eq!(parse_memory(status), Some(Memory { rss_mib: 40.0, peak_rss_mib: 54.0 }));
        assert_eq!(parse_memory("VmRSS:\t 1 kB\n"), None);
        assert_eq!(parse_memory("VmHWM:\t 1 MB\nVmRSS:\t 1 kB\n"), None);
    }

    /// Sockets that share a port are added up; a port without a socket is not one without drops.
    #[test]
    fn drops() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref \
             pointer drops\n  100: 0100007F:0202 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 71 2 0 12\n\
             101: 0100007F:0202 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 72 2 0 30\n  \
             102: 00000000:0203 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 73 2 0 0\n";
        assert_eq!(parse_udp_drops(table, 514), Some(42));
        assert_eq!(parse_udp_drops(table, 515), Some(0));
        assert_eq!(parse_udp_drops(table, 516), None);
        let waiting = table.replace(":00000000 00:", ":00000100 00:");
        assert_eq!((parse_udp_unread(&waiting, 514), parse_udp_unread(table, 515)), (Some(512), Some(0)));
        assert_eq!(parse_udp_unread(table, 516), None);
    }

    /// The size is found among the others.
    #[test]
    fn receive_buffers() {
        let text = "UNCONN 0 0 127.0.0.1:4739 0.0.0.0:*\n\t skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d0)\n";
        assert_eq!(parse_receive_buffer(text), Some(212_992));
        assert_eq!(parse_receive_buffer("skmem:(r0,t0)"), None);
    }

    /// A child is found while it is there.
    #[test]
    fn own_child() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        // Children belong to the thread that started them, and of a process only those of the first are looked at.
        let found = fs::read_to_string(format!("/proc/self/task/{}/children", nix::unistd::gettid())).unwrap();
        assert!(found.split_ascii_whitespace().any(|one| one == child.id().to_string()));
        assert!(descendants(child.id()).is_empty());
        child.kill().unwrap();
        let _ = child.wait().unwrap();
    }

    /// Both ends of connections to the port, and neither the listener nor other connections.
    #[test]
    fn unread() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:0202 00000000:0000 0A 00000000:00000007 00:00000000 00000000 0 0 71 1 0 100 0 0 10 0\n   \
             1: 0100007F:0202 0100007F:9C40 01 00000003:00000100 00:00000000 00000000 0 0 72 1 0 20 4 30 10 -1\n   \
             2: 0100007F:9C40 0100007F:0202 04 00001000:00000002 00:00000000 00000000 0 0 73 1 0 20 4 30 10 -1\n   \
             3: 0100007F:0203 0100007F:9C41 01 00000500:00000500 00:00000000 00000000 0 0 74 1 0 20 4 30 10 -1\n";
        assert_eq!(parse_tcp_unread(table, 0x202), 0x1100);
        assert_eq!(parse_tcp_unread(table, 0x204), 0);
    }

    /// What was written to a connection of this test is unread until it is read.
    #[test]
    fn own_connection() {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut sender = std::net::TcpStream::connect(address).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(b"abc").unwrap();
        assert!(tcp_unread(address.port()).unwrap() >= 3);
        receiver.read_exact(&mut [0; 3]).unwrap();
        // The acknowledgement of what was read may still be on its way.
        while tcp_unread(address.port()).unwrap() > 0 {
            std::thread::yield_now();
        }
    }

    /// The kernel knows the sockets of this test.
    #[test]
    fn own_socket() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(udp_drops(socket.local_addr().unwrap().port()), Some(0));
    }

    #[test]
    fn cpu_models() {
        assert_eq!(
            parse_cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel\t\t: 17\n"),
            Some("Some CPU @ 3 GHz")
        );
        assert_eq!(parse_cpu_model("processor\t: 0\n"), None);
    }

    /// The kernel's own files are understood: this process has a size, and uses more and more time.
    #[test]
    fn this_process() {
        let id = std::process::id();
        assert!(memory(id).unwrap().peak_rss_mib > 0.1);
        let before = cpu_time(id).unwrap();
        assert!(Duration::ZERO < before && before < cpu_time(id).unwrap());
    }
}
