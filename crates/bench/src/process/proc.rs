//! What /proc says about a process and the machine.

use std::fs;
use std::time::Duration;

use super::ProcessError;

/// One tick of the times in /proc/PID/stat: USER_HZ, which is 100 on every architecture that we build for.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of all threads of a process so far, user and system.
pub(super) fn cpu_time(id: u32) -> Result<Duration, ProcessError> {
    let path = format!("/proc/{id}/stat");
    let text = fs::read_to_string(&path).map_err(ProcessError::io("read the CPU time of the engine"))?;
    parse_cpu_time(&text).ok_or(ProcessError::Proc { path, what: "utime and stime" })
}

/// Fields 14 and 15 (proc_pid_stat(5)). The name, field 2, is in parentheses and may hold anything.
fn parse_cpu_time(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    TICK.checked_mul(user.checked_add(system)?)
}

/// Largest resident size of a process so far, in MiB.
pub(super) fn peak_rss_mib(id: u32) -> Result<f64, ProcessError> {
    let path = format!("/proc/{id}/status");
    let text = fs::read_to_string(&path).map_err(ProcessError::io("read the memory of the engine"))?;
    let kib = parse_peak_rss_kib(&text).ok_or(ProcessError::Proc { path, what: "VmHWM" })?;
    Ok(f64::from(kib) / 1024.0)
}

fn parse_peak_rss_kib(status: &str) -> Option<u32> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim_end().parse().ok()
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

    /// The name of a process may hold spaces and parentheses.
    #[test]
    fn cpu_times() {
        let stat = "4711 (a) b (c)) S 1 4711 4711 0 -1 4194560 1223 0 3 0 250 31 7 9 20 0 8 0 5550 1 2 3";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_millis(2_810)));
        for broken in ["", "4711 (a", "4711 (a) S 1 2 3", "4711 (a) S 1 4711 4711 0 -1 4194560 1223 0 3 0 x 31"] {
            assert_eq!(parse_cpu_time(broken), None, "{broken}");
        }
    }

    #[test]
    fn peak_rss() {
        let status = "Name:\tcatchment\nVmPeak:\t  999 kB\nVmHWM:\t   55296 kB\nVmRSS:\t   40000 kB\n";
        assert_eq!(parse_peak_rss_kib(status), Some(55_296));
        assert_eq!(parse_peak_rss_kib("VmRSS:\t 1 kB\n"), None);
        assert_eq!(parse_peak_rss_kib("VmHWM:\t 1 MB\n"), None);
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
        assert!(peak_rss_mib(id).unwrap() > 0.1);
        assert!(cpu_time(id).unwrap() <= cpu_time(id).unwrap());
    }
}
