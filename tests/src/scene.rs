//! The stage of one test.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};

use tempfile::TempDir;

/// Tests of one binary that may run processes at the same time: more only slow each other down.
const AT_ONCE: usize = 2;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// A folder for the files of a test, and the leave to run processes.
#[derive(Debug)]
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    /// Waits for its turn.
    ///
    /// # Panics
    /// If no temporary folder can be made.
    #[must_use]
    pub fn new() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running =
            ENDED.wait_while(running, |running| *running >= AT_ONCE).unwrap_or_else(PoisonError::into_inner);
        let folder = TempDir::new().expect("a temporary folder can be made");
        *running += 1;
        Self { folder }
    }

    /// A path in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the folder and gives its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }

    /// A path in the folder that does not exist yet: `stem` with a number.
    pub(crate) fn unused(&self, stem: &str) -> PathBuf {
        (0u32..).map(|number| self.path(&format!("{stem}-{number}"))).find(|path| !Path::exists(path)).expect("endless")
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}
