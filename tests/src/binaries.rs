//! Where the binaries and the repository are.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command that runs `catchment` in the root of the repository: the binary that `CATCHMENT_BINARY` names, or the one
/// that `cargo test --workspace` has built beside the test.
#[must_use]
pub fn catchment() -> Command {
    command("catchment", "CATCHMENT_BINARY")
}

/// The same for `catchment-loadgen` and `CATCHMENT_LOADGEN_BINARY`.
#[must_use]
pub fn catchment_loadgen() -> Command {
    command("catchment-loadgen", "CATCHMENT_LOADGEN_BINARY")
}

/// The root of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the repository")
}

fn command(name: &str, variable: &str) -> Command {
    let path = std::env::var_os(variable).map_or_else(|| beside_the_test(name), PathBuf::from);
    assert!(
        path.is_file(),
        "{} is missing: run `cargo test --workspace`, which builds it, or name it by {variable}",
        path.display()
    );
    let mut command = Command::new(path);
    let _ = command.current_dir(repository());
    command
}

/// Tests are in `target/<profile>/deps`, binaries one folder above.
fn beside_the_test(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let profile = test.parent().and_then(Path::parent).expect("a test is in target/<profile>/deps");
    profile.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
