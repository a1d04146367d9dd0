//! Files that are read again when they change.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use otel_arrow_dfe_config::error::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::ingest::Seldom;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// A file that was changed this short a time ago is read again at the next look: another change may have the same time.
const UNSETTLED: Duration = Duration::from_secs(2);

/// Files with rows of telemetry sessions.
#[derive(Debug, Clone)]
pub(in super::super) struct FilesConfig {
    pub(in super::super) paths: Vec<PathBuf>,
    /// How often it is looked whether a file has changed.
    pub(in super::super) poll_interval: Duration,
}

impl FilesConfig {
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(in super::super) fn check(&self) -> Result<(), Error> {
        for (at, path) in self.paths.iter().enumerate() {
            if path.as_os_str().is_empty() {
                return Err(config::invalid(format!("config.sonic.sessions.files[{at}]: empty, expected a path")));
            }
            if self.paths.iter().take(at).any(|other| other == path) {
                return Err(config::invalid(format!(
                    "config.sonic.sessions.files[{at}]: `{}` is given twice, expected each path once",
                    path.display()
                )));
            }
        }
        config::within("sonic.sessions.file_interval (ms)", self.poll_interval.as_millis(), 10, 24 * 3_600_000)
    }
}

/// A change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum FileUpdate<'a> {
    /// The file is there for the first time, or has another content.
    Content {
        /// As configured.
        path: &'a Path,
        /// All of the file. A program that writes it in place may not have finished; its next change is told too.
        bytes: &'a [u8],
    },
    /// The file is no longer there.
    Gone {
        /// As configured.
        path: &'a Path,
    },
}

/// Sums over the life of the source, and what it knows now.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct FilesCounters {
    /// Contents that were told.
    pub(in super::super) loads: u64,
    /// Files that were there and are no longer.
    pub(in super::super) removals: u64,
    /// Files that could not be read, at each look.
    pub(in super::super) errors: u64,
    /// Files there now.
    pub(in super::super) files: u64,
}

/// Tells the contents of the files and their changes by `update` until `stop`. A file that cannot be read stays what it
/// was told to be.
pub(in super::super) async fn watch(
    config: FilesConfig,
    stop: CancellationToken,
    counters: Rc<RefCell<FilesCounters>>,
    mut update: impl FnMut(FileUpdate<'_>),
) {
    let told = Seldom::default();
    let mut files: Vec<_> = config.paths.iter().map(|path| (path.clone(), Known::default())).collect();
    loop {
        for (path, known) in &mut files {
            let (asked, stamp) = (path.clone(), known.stamp);
            let Ok(found) = tokio::task::spawn_blocking(move || look(&asked, stamp)).await else { continue };
            match found {
                Ok(Found::Same) => {}
                Ok(Found::Content { bytes, stamp }) => {
                    known.stamp = stamp;
                    let hash = Some(hash(&bytes));
                    if known.hash != hash {
                        let is_new = known.hash.is_none();
                        known.hash = hash;
                        {
                            let mut counters = counters.borrow_mut();
                            counters.loads += 1;
                            counters.files += u64::from(is_new);
                        }
                        update(FileUpdate::Content { path, bytes: &bytes });
                    }
                }
                Err(error) => {
                    counters.borrow_mut().errors += 1;
                    if told.now() {
                        otel_warn!(
                            "ipfix_receiver.session_file.failed",
                            path = %path.display(),
                            error = %error,
                            message = "a file of telemetry sessions cannot be read; it is tried again"
                        );
                    }
                    known.stamp = None;
                    if error.kind() == io::ErrorKind::NotFound && known.hash.take().is_some() {
                        {
                            let mut counters = counters.borrow_mut();
                            counters.removals += 1;
                            counters.files -= 1;
                        }
                        update(FileUpdate::Gone { path });
                    }
                }
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(config.poll_interval) => {}
        }
    }
}

/// What is known of a file.
#[derive(Debug, Default)]
struct Known {
    /// Of the content that was read last, if it can be relied on.
    stamp: Option<Stamp>,
    /// Of the content that was told last.
    hash: Option<u64>,
}

/// What changes when a file is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
    device: u64,
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("no regular file"));
        }
        Ok(Self {
            modified: metadata.modified().ok(),
            bytes: metadata.len(),
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    /// Whether a later change is certain to show.
    fn is_settled(&self) -> bool {
        let age = self.modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        age.is_some_and(|age| age >= UNSETTLED)
    }
}

enum Found {
    /// As it was.
    Same,
    Content {
        bytes: Vec<u8>,
        stamp: Option<Stamp>,
    },
}

fn look(path: &Path, known: Option<Stamp>) -> io::Result<Found> {
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("no regular file"));
    }
    let mut file = File::open(path)?;
    let stamp = Stamp::of(&file)?;
    if known == Some(stamp) {
        return Ok(Found::Same);
    }
    let is_settled = stamp.is_settled();
    let mut bytes = Vec::new();
    let _ = (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("larger than 64 MiB"));
    }
    let is_settled = is_settled && Stamp::of(&file)? == stamp;
    Ok(Found::Content { bytes, stamp: is_settled.then_some(stamp) })
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
