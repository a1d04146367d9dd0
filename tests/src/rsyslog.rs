//! rsyslog, which Debian does not install beside syslog-ng.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Process, Scene};

/// Names the folder that the packages are unpacked in.
const VARIABLE: &str = "CATCHMENT_RSYSLOG";

/// An rsyslogd: of the system, or of packages that are unpacked and not installed.
#[derive(Debug)]
pub struct Rsyslog {
    /// `None`: that of the system.
    folder: Option<PathBuf>,
}

impl Rsyslog {
    /// Looks for rsyslogd with its driver for TLS. Where they are missing, says that the test is skipped.
    #[allow(clippy::print_stdout, reason = "cargo test shows what a test prints with --nocapture")]
    #[must_use]
    pub fn find() -> Option<Self> {
        let found = match std::env::var_os(VARIABLE) {
            Some(folder) => {
                let found = Self { folder: Some(PathBuf::from(folder)) };
                Some(found).filter(|found| found.modules().is_some_and(|folder| folder.join("lmnsd_gtls.so").is_file()))
            }
            None => Some(Self { folder: None }),
        };
        let found = found.filter(|found| {
            let status = found.command().arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        });
        if found.is_none() {
            println!("SKIPPED: no rsyslogd, and {VARIABLE} names no folder with rsyslog and rsyslog-gnutls unpacked");
        }
        found
    }

    /// Starts it with `config` (RainerScript) and a working folder of its own in the scene.
    #[must_use]
    pub fn start(&self, scene: &Scene, config: &str) -> Process {
        let work = scene.unused("rsyslog");
        std::fs::create_dir(&work).expect("a new folder");
        let file = work.join("rsyslog.conf");
        let text = format!("global(workDirectory=\"{}\" localHostname=\"relay-1\")\n{config}", work.display());
        std::fs::write(&file, text).expect("a new file");
        let mut command = self.command();
        // In the foreground, where it is, without looking names up.
        let _ = command.args(["-n", "-C", "-x", "-i"]).arg(work.join("pid")).arg("-f").arg(file);
        if let Some(modules) = self.modules() {
            let _ = command.arg("-M").arg(modules);
        }
        Process::start(&mut command)
    }

    fn command(&self) -> Command {
        let Some(folder) = &self.folder else { return Command::new("rsyslogd") };
        let mut command = Command::new(folder.join("usr/sbin/rsyslogd"));
        if let Some(libraries) = self.libraries() {
            let _ = command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    fn modules(&self) -> Option<PathBuf> {
        Some(self.libraries()?.join("rsyslog"))
    }

    /// `usr/lib/<architecture>`: the one that has modules.
    fn libraries(&self) -> Option<PathBuf> {
        let folders = std::fs::read_dir(self.folder.as_ref()?.join("usr/lib")).ok()?;
        folders.filter_map(|entry| Some(entry.ok()?.path())).find(|path| Path::exists(&path.join("rsyslog/lmnet.so")))
    }
}
