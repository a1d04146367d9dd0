//! Templates kept in a file, so that a restart loses no data until the exporters send theirs again.
//!
//! Every core has its own exporters and writes its own file: `PATH` in a pipeline of one core, `PATH.N` for core `N` of
//! several. All of these are read at the start, the newest last, so that it does not matter on which core an exporter
//! comes back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::config::TemplateCacheConfig;
use super::shared::Shared;

/// The file of one core.
#[derive(Debug)]
pub(super) struct TemplateCache {
    /// As configured.
    base: PathBuf,
    own: PathBuf,
    interval: Duration,
}

impl TemplateCache {
    pub(super) fn new(config: &TemplateCacheConfig, core: usize, cores: usize) -> Self {
        let own = if cores > 1 { with_suffix(&config.path, &core.to_string()) } else { config.path.clone() };
        Self { base: config.path.clone(), own, interval: config.interval }
    }

    /// Tells at the start if the file could not be written later.
    pub(super) fn check(&self, shared: &Shared) {
        let trial = with_suffix(&self.own, "new");
        if let Err(error) = fs::File::create(&trial).and_then(|_| fs::remove_file(&trial)) {
            self.unwritable(shared, &error);
        }
    }

    /// Reads what was kept, by whichever core. What cannot be read is told and left alone.
    pub(super) fn load(&self, shared: &Shared) {
        for path in self.files() {
            let shown = path.display().to_string();
            let read = fs::read(&path).map_err(|error| error.to_string());
            match read.and_then(|bytes| shared.restore(&bytes).map_err(|error| error.to_string())) {
                Ok(templates) => {
                    otel_info!("ipfix_receiver.template_cache.loaded", path = shown.as_str(), templates = templates);
                }
                Err(error) => {
                    otel_warn!(
                        "ipfix_receiver.template_cache.unreadable",
                        path = shown.as_str(),
                        error = error.as_str(),
                        message = "templates of this file are not known until their exporters send them again"
                    );
                }
            }
        }
    }

    /// The files that are there, oldest first.
    fn files(&self) -> Vec<PathBuf> {
        let folder = match self.base.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let Some(name) = self.base.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            return Vec::new();
        };
        let is_ours = |found: &str| {
            found.strip_prefix(&name).is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('.').is_some_and(|core| core.parse::<u32>().is_ok())
            })
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter(|entry| is_ours(&entry.file_name().to_string_lossy()))
            .map(|entry| {
                let written = entry.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                (written, entry.path())
            })
            .collect();
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    }

    /// Writes what is known now, if it is not what was written last.
    pub(super) fn save(&self, shared: &Shared) {
        let Some(bytes) = shared.snapshot_if_changed() else { return };
        if let Err(error) = write_whole(&self.own, &bytes) {
            self.unwritable(shared, &error);
        }
    }

    fn unwritable(&self, shared: &Shared, error: &io::Error) {
        shared.totals.borrow_mut().template_cache_errors += 1;
        otel_warn!(
            "ipfix_receiver.template_cache.unwritable",
            path = %self.own.display(),
            error = %error,
            message = "templates would not survive a restart; expected a folder that this process may write to"
        );
    }

    /// Writes from time to time until the intake stops, and then once more.
    pub(super) async fn run(self, shared: Rc<Shared>) {
        loop {
            tokio::select! {
                () = shared.intake.stop.cancelled() => break,
                () = tokio::time::sleep(self.interval) => self.save(&shared),
            }
        }
        self.save(&shared);
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(suffix);
    path.into()
}

/// Writes a file so that it is there whole or as it was before.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = with_suffix(path, "new");
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each core has its file, and all of them are found, but nothing else that lies beside.
    #[test]
    fn files_of_cores() {
        let folder = tempfile::tempdir().expect("folder");
        let config = TemplateCacheConfig { path: folder.path().join("t.cache"), interval: Duration::from_secs(1) };
        assert_eq!(TemplateCache::new(&config, 3, 1).own, config.path);
        let cache = TemplateCache::new(&config, 3, 4);
        assert_eq!(cache.own, folder.path().join("t.cache.3"));
        assert!(cache.files().is_empty());
        for name in ["t.cache", "t.cache.0", "t.cache.12", "t.cache.new", "t.cache.bak", "other"] {
            fs::write(folder.path().join(name), b"x").expect("written");
        }
        let mut found: Vec<_> =
            cache.files().iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
        found.sort();
        assert_eq!(found, ["t.cache", "t.cache.0", "t.cache.12"]);
    }

    /// A file is replaced as a whole.
    #[test]
    fn written_whole() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("t.cache");
        write_whole(&path, b"first").expect("written");
        write_whole(&path, b"second").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"second");
        assert!(write_whole(&folder.path().join("missing").join("t"), b"x").is_err());
    }
}
