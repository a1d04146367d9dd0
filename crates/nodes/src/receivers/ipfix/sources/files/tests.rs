use std::fs::FileTimes;
use std::io::Write;

use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::ingest::tcp::testing::until;

/// What was told, as text: the content, or `None` when it is gone.
type Told = Rc<RefCell<Vec<(PathBuf, Option<String>)>>>;

fn config(paths: &[&Path]) -> FilesConfig {
    let paths = paths.iter().map(|path| path.to_path_buf()).collect();
    let config = FilesConfig { paths, poll_interval: Duration::from_millis(10) };
    config.check().expect("valid");
    config
}

fn start(paths: &[&Path]) -> (Told, CancellationToken, Rc<RefCell<FilesCounters>>, tokio::task::JoinHandle<()>) {
    let (told, stop, counters) = (Told::default(), CancellationToken::new(), Rc::new(RefCell::default()));
    let list = Rc::clone(&told);
    let update = move |update: FileUpdate<'_>| {
        list.borrow_mut().push(match update {
            FileUpdate::Content { path, bytes } => (path.to_owned(), Some(String::from_utf8_lossy(bytes).into_owned())),
            FileUpdate::Gone { path } => (path.to_owned(), None),
        });
    };
    let task = spawn_local(watch(config(paths), stop.clone(), Rc::clone(&counters), update));
    (told, stop, counters, task)
}

async fn within_time(condition: impl Fn() -> bool) {
    tokio::time::timeout(Duration::from_secs(20), until(condition)).await.expect("in time");
}

/// Contents are told at the start, when a file comes, changes, is replaced or goes; what is the same is told once.
#[tokio::test]
async fn changes_are_told_once() {
    LocalSet::new()
        .run_until(async {
            let folder = tempfile::tempdir().expect("folder");
            let (first, second) = (folder.path().join("first"), folder.path().join("second"));
            std::fs::write(&first, "one").expect("written");
            let (told, stop, counters, task) = start(&[&first, &second]);
            let last = || told.borrow().last().cloned();
            within_time(|| last() == Some((first.clone(), Some("one".to_owned())))).await;
            std::fs::write(&second, "two").expect("written");
            within_time(|| last() == Some((second.clone(), Some("two".to_owned())))).await;
            // In place, with the same length.
            std::fs::write(&first, "eno").expect("written");
            within_time(|| last() == Some((first.clone(), Some("eno".to_owned())))).await;
            let mut other = tempfile::NamedTempFile::new_in(folder.path()).expect("file");
            other.write_all(b"replaced").expect("written");
            let _ = other.persist(&second).expect("replaced");
            within_time(|| last() == Some((second.clone(), Some("replaced".to_owned())))).await;
            std::fs::remove_file(&first).expect("removed");
            within_time(|| last() == Some((first.clone(), None))).await;
            assert_eq!(told.borrow().len(), 5);
            let counted = *counters.borrow();
            assert_eq!((counted.loads, counted.removals, counted.files), (4, 1, 1));
            assert!(counted.errors > 0, "the second was missing at first");
            stop.cancel();
            task.await.expect("ended");
        })
        .await;
}

/// A file that cannot be read, or is none, is an error at each look and stays what it was.
#[tokio::test]
async fn errors_are_counted() {
    LocalSet::new()
        .run_until(async {
            let folder = tempfile::tempdir().expect("folder");
            let path = folder.path().join("rows");
            std::fs::write(&path, "rows").expect("written");
            let (told, stop, counters, task) = start(&[&path]);
            within_time(|| told.borrow().len() == 1).await;
            std::fs::remove_file(&path).expect("removed");
            std::fs::create_dir(&path).expect("folder");
            let errors = counters.borrow().errors;
            within_time(|| counters.borrow().errors > errors + 1).await;
            // Between the two calls it may have been seen missing; it is not told more than that.
            assert!(told.borrow().iter().skip(1).all(|(_, content)| content.is_none()) && told.borrow().len() <= 2);
            stop.cancel();
            task.await.expect("ended");
        })
        .await;
}

/// A file that has not been changed for a while is not read again; one that has is.
#[test]
fn settled_files_are_not_read_again() {
    let mut file = tempfile::NamedTempFile::new().expect("file");
    file.write_all(b"rows").expect("written");
    let Found::Content { bytes, stamp } = look(file.path(), None).expect("read") else { panic!("content") };
    assert_eq!((bytes.as_slice(), stamp), (&b"rows"[..], None), "changed just now");
    let old = SystemTime::now() - 2 * UNSETTLED;
    file.as_file().set_times(FileTimes::new().set_modified(old)).expect("set");
    let Found::Content { stamp, .. } = look(file.path(), None).expect("read") else { panic!("content") };
    assert!(stamp.is_some() && matches!(look(file.path(), stamp), Ok(Found::Same)));
    file.as_file().set_times(FileTimes::new().set_modified(old - UNSETTLED)).expect("set");
    assert!(matches!(look(file.path(), stamp), Ok(Found::Content { .. })));
    assert!(look(Path::new("/dev/null"), None).is_err(), "no regular file");
}

/// Wrong settings are named.
#[test]
fn wrong_settings_are_explained() {
    for (paths, millis, expected) in [
        (&["a", ""][..], 10, "sonic.sessions.files[1]: empty"),
        (&["a", "a"], 10, "sonic.sessions.files[1]: `a` is given twice"),
        (&["a"], 1, "sonic.sessions.file_interval (ms): 1"),
    ] {
        let paths = paths.iter().map(PathBuf::from).collect();
        let config = FilesConfig { paths, poll_interval: Duration::from_millis(millis) };
        let error = config.check().expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
