//! Redis as a process.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::{Process, Scene, Sender, wait_until};

/// A Redis of the test, on a socket in its folder.
#[derive(Debug)]
pub struct Redis {
    _process: Process,
    socket: PathBuf,
}

impl Redis {
    /// Starts it. Where it is missing, says that the test is skipped.
    ///
    /// # Panics
    /// If it does not listen.
    #[must_use]
    pub fn start(scene: &Scene) -> Option<Self> {
        let server = Sender::find("redis-server")?;
        let (folder, socket) = (scene.path(""), scene.path("redis.sock"));
        let path = |path: &Path| path.to_str().expect("a path of text").to_owned();
        let (folder, unix) = (path(&folder), path(&socket));
        let mut process =
            server.start(&["--port", "0", "--unixsocket", &unix, "--dir", &folder, "--save", "", "--appendonly", "no"]);
        wait_until("redis listens", || {
            assert!(process.is_running(), "redis-server ended: {}", process.stdout());
            UnixStream::connect(&socket).is_ok()
        });
        Some(Self { _process: process, socket })
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A command on database 6, in which SONiC keeps its states.
    ///
    /// # Panics
    /// If it is refused.
    pub fn command(&self, words: &[&[u8]]) {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        for words in [&[&b"SELECT"[..], b"6"][..], words] {
            let mut request = format!("*{}\r\n", words.len()).into_bytes();
            for word in words {
                request.extend(format!("${}\r\n", word.len()).as_bytes());
                request.extend(*word);
                request.extend(b"\r\n");
            }
            stream.write_all(&request).expect("it is read");
            let mut answer = [0; 512];
            let length = stream.read(&mut answer).expect("an answer");
            assert!(answer.starts_with(b"+") || answer.starts_with(b":"), "{:?}", &answer[..length]);
        }
    }
}
