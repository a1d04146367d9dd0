//! The program with the crates of others.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use super::super::progress;
use super::corpus::{Content, Corpus};
use super::run::{RunError, Tally, Times};

/// Files of a corpus for the program.
#[derive(Debug)]
pub(super) struct Files {
    folder: TempDir,
    sum: &'static str,
}

/// What the program prints.
#[derive(Debug, Deserialize)]
struct Printed {
    items: u64,
    sum: u64,
    failed: u64,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    cpu_seconds: Option<f64>,
    #[serde(default)]
    memcpy_seconds: Option<f64>,
}

impl Files {
    /// Writes them.
    pub(super) fn write(corpus: &Corpus) -> Result<Self, io::Error> {
        let folder = tempfile::tempdir()?;
        let sum = match corpus.content {
            Content::Flows => "flows",
            Content::Sonic(..) => "counters",
        };
        let files = Self { folder, sum };
        std::fs::write(files.templates(), corpus.templates())?;
        std::fs::write(files.messages(), corpus.messages.bytes())?;
        Ok(files)
    }

    fn templates(&self) -> PathBuf {
        self.folder.path().join("templates.ipfix")
    }

    fn messages(&self) -> PathBuf {
        self.folder.path().join("messages.ipfix")
    }

    /// Decodes them with a crate for about `time` of a core. There are no times if it could not decode all of them.
    pub(super) fn decode(
        &self,
        program: &Path,
        decoder: &str,
        time: Duration,
    ) -> Result<(Tally, Option<Times>), RunError> {
        let mut command = Command::new(program);
        let _ = command.args([decoder, self.sum]).arg(self.templates()).arg(self.messages());
        let _ = command.arg(time.as_millis().to_string()).stdin(Stdio::null());
        let output = command.output().map_err(RunError::Peer)?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(RunError::PeerFailed { said: shortened(&text) });
        }
        let printed: Printed =
            serde_json::from_slice(&output.stdout).map_err(io::Error::from).map_err(RunError::Peer)?;
        let Printed { items, sum, failed, error, cpu_seconds, memcpy_seconds } = printed;
        if let Some(error) = error {
            progress(&format!(
                "{decoder}: {failed} messages could not be decoded, the first for: {}",
                shortened(&error)
            ));
        }
        let times = cpu_seconds.zip(memcpy_seconds);
        let times = times.map(|(cpu_seconds, memcpy_seconds)| Times { cpu_seconds, memcpy_seconds });
        Ok((Tally { items, sum }, times))
    }
}

/// An error of a decoder may show all that it has read.
fn shortened(text: &str) -> String {
    text.trim().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::super::Setup;
    use super::*;

    /// The files are there when the program runs; what it prints is taken, and what it complains of shown.
    #[test]
    fn programs() {
        let corpus = Corpus::named("sonic-2/point", &Setup::default()).unwrap().unwrap();
        let files = Files::write(&corpus).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let program = |text: &str| {
            let path = folder.path().join("program");
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let good = program(
            "test $1 = a && test $2 = counters && test -s $3 && test -s $4 && test $5 = 20 && \
             echo '{\"items\": 3, \"sum\": 7, \"failed\": 0, \"cpu_seconds\": 0.5, \"memcpy_seconds\": 0.1}'",
        );
        let (tally, times) = files.decode(&good, "a", Duration::from_millis(20)).unwrap();
        let expected = Times { cpu_seconds: 0.5, memcpy_seconds: 0.1 };
        assert_eq!((tally, times), (Tally { items: 3, sum: 7 }, Some(expected)));
        let part = program("echo '{\"items\": 1, \"sum\": 2, \"failed\": 5, \"error\": \"eof\"}'");
        let found = files.decode(&part, "a", Duration::from_millis(20)).unwrap();
        assert_eq!(found, (Tally { items: 1, sum: 2 }, None));
        let bad = program("echo cannot >&2; exit 1");
        let error = files.decode(&bad, "a", Duration::from_millis(20)).unwrap_err().to_string();
        assert!(error.contains("cannot"), "{error}");
    }
}
