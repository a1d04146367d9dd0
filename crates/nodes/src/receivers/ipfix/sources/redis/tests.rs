use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use redis::{ConnectionAddr, IntoConnectionInfo};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;
use crate::config;
use crate::ingest::tcp::testing::until;

const TABLE: &str = "HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE";

/// A server of the test's own, on a unix socket in a folder of its own.
struct Server {
    folder: TempDir,
    child: Child,
}

impl Server {
    /// `None`, and a word about it, where the program is not installed.
    fn start(options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("folder");
        let child = Self::spawn(folder.path(), options);
        if child.is_none() {
            eprintln!("skipped: no program redis-server");
        }
        Some(Self { child: child?, folder })
    }

    fn spawn(folder: &Path, options: &[&str]) -> Option<Child> {
        let mut command = Command::new("redis-server");
        let _ = command.args(["--port", "0", "--save", "", "--dir"]).arg(folder).arg("--unixsocket");
        let _ = command.arg(folder.join("socket")).args(options).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn stop(&mut self) {
        self.child.kill().expect("killed");
        let _ = self.child.wait().expect("ended");
        let _ = std::fs::remove_file(self.socket());
    }

    /// Starts it anew, with nothing in it, after [`Self::stop`].
    fn start_again(&mut self, options: &[&str]) {
        self.child = Self::spawn(self.folder.path(), options).expect("installed");
    }

    /// A connection to database `db`, as soon as the server is there.
    async fn client(&self, db: i64, password: Option<&str>) -> redis::Connection {
        let info = ConnectionAddr::Unix(self.socket()).into_connection_info().expect("address");
        let mut settings = info.redis_settings().clone().set_db(db);
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let client = Client::open(info.set_redis_settings(settings)).expect("client");
        within_time(|| client.get_connection().is_ok()).await;
        client.get_connection().expect("connected")
    }

    fn config(&self, more: Value) -> RedisConfig {
        let mut value = json!({"unix_socket": self.socket(), "rescan_interval": "1h"});
        for (key, more) in more.as_object().expect("map") {
            value[key] = more.clone();
        }
        let config: RedisConfig = config::parse(&value).expect("valid");
        config.check().expect("valid");
        config
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn within_time(condition: impl Fn() -> bool) {
    timeout(Duration::from_secs(30), until(condition)).await.expect("in time");
}

/// A source that keeps what it was told.
struct Source {
    rows: Rc<RefCell<HashMap<String, SessionRow>>>,
    updates: Rc<RefCell<Vec<SessionUpdate>>>,
    counters: Rc<RefCell<RedisCounters>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Source {
    fn start(config: RedisConfig) -> Self {
        let (rows, updates) = (Rc::<RefCell<HashMap<String, SessionRow>>>::default(), Rc::<RefCell<Vec<_>>>::default());
        let (counters, stop) = (Rc::<RefCell<RedisCounters>>::default(), CancellationToken::new());
        let (kept, list) = (Rc::clone(&rows), Rc::clone(&updates));
        let update = move |update: SessionUpdate| {
            list.borrow_mut().push(update.clone());
            let mut kept = kept.borrow_mut();
            match update {
                SessionUpdate::Set { key, row } => drop(kept.insert(key, row)),
                SessionUpdate::Remove { key } => assert!(kept.remove(&key).is_some(), "{key} was known"),
            }
        };
        let task = spawn_local(follow(config, stop.clone(), Rc::clone(&counters), update));
        Self { rows, updates, counters, stop, task }
    }

    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self.rows.borrow().keys().cloned().collect();
        keys.sort();
        keys
    }

    fn counters(&self) -> RedisCounters {
        *self.counters.borrow()
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("ended");
    }
}

/// Writes a row whose configuration is no text.
fn set(client: &mut redis::Connection, key: &str, names: &str) {
    redis::cmd("HSET")
        .arg(format!("{TABLE}|{key}"))
        .arg(&[("stream_status", "enabled"), ("session_type", "ipfix"), ("object_names", names), ("object_ids", "1")])
        .arg("session_config")
        .arg(&[0u8, 10, 0xff, 0xfe, 0x0d, 0x0a, 0][..])
        .arg("more")
        .arg("unknown")
        .exec(client)
        .expect("set");
}

fn delete(client: &mut redis::Connection, key: &str) {
    redis::cmd("DEL").arg(format!("{TABLE}|{key}")).exec(client).expect("deleted");
}

/// Rows that are there, and then each change as the server gives notice of it. Other tables and databases, and keys of
/// the table that are no hashes, are nothing to us.
#[tokio::test]
async fn rows_are_followed() {
    let Some(server) = Server::start(&["--notify-keyspace-events", "AKE"]) else { return };
    LocalSet::new()
        .run_until(async {
            let mut client = server.client(6, None).await;
            set(&mut client, "profile|PORT", "Ethernet0");
            set(&mut server.client(0, None).await, "other|database", "Ethernet0");
            for at in 0..2_000 {
                redis::cmd("HSET").arg(format!("OTHER_TABLE|{at}")).arg("a").arg("b").exec(&mut client).expect("set");
            }
            redis::cmd("SET").arg(format!("{TABLE}|text")).arg("no hash").exec(&mut client).expect("set");
            let source = Source::start(server.config(json!({})));
            within_time(|| source.counters().connected).await;
            let row = source.rows.borrow().get("profile|PORT").cloned().expect("there at the start");
            assert_eq!(row.session_config, [0, 10, 0xff, 0xfe, 0x0d, 0x0a, 0]);
            assert_eq!((row.stream_status.as_str(), row.session_type.as_str()), ("enabled", "ipfix"));
            assert_eq!((row.object_names.as_str(), row.object_ids.as_str()), ("Ethernet0", "1"));
            assert_eq!((source.keys().len(), source.counters().rows_refused), (1, 1));

            set(&mut client, "profile|QUEUE", "Ethernet0|3");
            within_time(|| source.keys() == ["profile|PORT", "profile|QUEUE"]).await;
            redis::cmd("HSET")
                .arg(format!("{TABLE}|profile|PORT"))
                .arg(&[("stream_status", "disabled")])
                .exec(&mut client)
                .expect("changed");
            within_time(|| source.rows.borrow()["profile|PORT"].stream_status == "disabled").await;
            delete(&mut client, "profile|QUEUE");
            within_time(|| source.keys() == ["profile|PORT"]).await;
            assert_eq!(source.counters().scans, 1, "by notices alone");

            // A change that changes nothing is not told.
            let updates = source.updates.borrow().len();
            let notices = source.counters().notices;
            set(&mut client, "profile|PORT", "Ethernet0");
            set(&mut client, "profile|PORT", "Ethernet0");
            set(&mut client, "last", "Ethernet0");
            within_time(|| source.counters().notices >= notices + 3 && source.keys().len() == 2).await;
            within_time(|| source.rows.borrow()["profile|PORT"].stream_status == "enabled").await;
            let told = source.updates.borrow().len() - updates;
            assert_eq!(told, 2, "enabled again, and the last one");
            let counters = source.counters();
            assert_eq!((counters.rows, counters.rows_removed, counters.connects, counters.failures), (2, 1, 1, 0));
            source.end().await;
        })
        .await;
}

/// A server that gives no notices is read again and again; its setting is not touched.
#[tokio::test]
async fn without_notices_rows_are_read_again() {
    let Some(server) = Server::start(&["--notify-keyspace-events", ""]) else { return };
    LocalSet::new()
        .run_until(async {
            let mut client = server.client(6, None).await;
            set(&mut client, "one", "a");
            let source = Source::start(server.config(json!({"rescan_interval": "100ms"})));
            within_time(|| source.keys() == ["one"]).await;
            set(&mut client, "two", "a");
            delete(&mut client, "one");
            within_time(|| source.keys() == ["two"]).await;
            set(&mut client, "two", "b");
            within_time(|| source.rows.borrow()["two"].object_names == "b").await;
            assert_eq!(source.counters().notices, 0);
            let setting: Vec<String> =
                redis::cmd("CONFIG").arg(&["GET", "notify-keyspace-events"]).query(&mut client).expect("setting");
            assert_eq!(setting[1], "");
            source.end().await;
        })
        .await;
}

/// A server that is not there at first, and one that goes and comes again with other rows: what changed is told, with
/// what is gone, and what stayed is not told again.
#[tokio::test]
async fn a_server_may_come_and_go() {
    let options = ["--notify-keyspace-events", "AKE"];
    let Some(mut server) = Server::start(&options) else { return };
    LocalSet::new()
        .run_until(async {
            drop(server.client(6, None).await);
            server.stop();
            let source = Source::start(server.config(json!({})));
            within_time(|| source.counters().failures > 0).await;
            server.start_again(&options);
            let mut client = server.client(6, None).await;
            for key in ["gone", "changed", "stays"] {
                set(&mut client, key, "a");
            }
            within_time(|| source.keys().len() == 3).await;
            drop(client);
            let (failures, updates) = (source.counters().failures, source.updates.borrow().len());
            server.stop();
            within_time(|| source.counters().failures > failures && !source.counters().connected).await;
            assert_eq!(source.keys().len(), 3, "what was known holds");
            // All is written before the source can see any of it.
            server.start_again(&[&options[..], &["--requirepass", "x"]].concat());
            let mut client = server.client(6, Some("x")).await;
            set(&mut client, "changed", "b");
            set(&mut client, "stays", "a");
            set(&mut client, "new", "a");
            redis::cmd("CONFIG").arg(&["SET", "requirepass", ""]).exec(&mut client).expect("open");
            within_time(|| source.keys() == ["changed", "new", "stays"]).await;
            within_time(|| source.counters().connects == 2).await;
            let mut told: Vec<_> = source.updates.borrow()[updates..]
                .iter()
                .map(|update| match update {
                    SessionUpdate::Set { key, row } => format!("{key}={}", row.object_names),
                    SessionUpdate::Remove { key } => format!("-{key}"),
                })
                .collect();
            told.sort();
            assert_eq!(told, ["-gone", "changed=b", "new=a"]);
            source.end().await;
        })
        .await;
}

/// The password comes from a file, which is read again at each try.
#[tokio::test]
async fn the_password_comes_from_a_file() {
    let Some(server) = Server::start(&["--requirepass", "se cret"]) else { return };
    LocalSet::new()
        .run_until(async {
            set(&mut server.client(6, Some("se cret")).await, "one", "a");
            let file = server.folder.path().join("password");
            std::fs::write(&file, "wrong").expect("written");
            let source = Source::start(server.config(json!({"password_file": file})));
            within_time(|| source.counters().failures > 0).await;
            assert!(source.keys().is_empty());
            std::fs::write(&file, "se cret\n").expect("written");
            within_time(|| source.keys() == ["one"]).await;
            source.end().await;
        })
        .await;
}

/// Wrong settings are named, and a password shows nowhere.
#[test]
fn wrong_settings_are_explained() {
    for (value, expected) in [
        (json!({}), "config.sonic.sessions.redis.url: missing"),
        (json!({"url": "redis://a", "unix_socket": "/b"}), "expected one of them"),
        (json!({"unix_socket": ""}), "config.sonic.sessions.redis.unix_socket: empty"),
        (json!({"url": "http://a"}), "redis://host:port"),
        (json!({"url": "rediss://a"}), "TLS is not supported"),
        (json!({"url": "redis://a/3"}), "config.sonic.sessions.redis.url: names database 3"),
        (json!({"url": "redis://:p@a", "password_file": "/f"}), "`password_file`"),
        (json!({"url": "redis://u:p@a", "username": "v"}), "`username`"),
        (json!({"url": "redis://a", "table": ""}), "config.sonic.sessions.redis.table"),
        (json!({"url": "redis://a", "rescan_interval": "1ms"}), "redis.rescan_interval (ms): 1"),
        (json!({"url": "redis://a", "db": -1}), "config.db"),
    ] {
        let checked = config::parse::<RedisConfig>(&value).and_then(|config| config.check());
        let error = checked.expect_err("refused").to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let config: RedisConfig = config::parse(&json!({"url": "redis://:hidden@a/6"})).expect("valid");
    config.check().expect("valid");
    assert_eq!((config.db, config.table.as_str(), config.separator.as_str()), (6, TABLE, "|"));
    let shown = format!("{config:?}");
    assert!(shown.contains("a:6379") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn notices_are_known_by_their_flags() {
    let gives = ["AKE", "KEA", "Khg", "Kghx", "KA"];
    let gives_not = ["", "AE", "Kh", "Kg", "h", "Ehg"];
    assert!(gives.iter().all(|flags| gives_notices(flags)) && !gives_not.iter().any(|flags| gives_notices(flags)));
}

#[test]
fn names_are_no_patterns() {
    assert_eq!(glob_escaped("A_TABLE|"), "A_TABLE|");
    assert_eq!(glob_escaped(r"a*b?[c]\"), r"a\*b\?\[c\]\\");
}
