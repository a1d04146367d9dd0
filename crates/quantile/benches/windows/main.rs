//! Observations through windows, in slices of one series and row by row of many, and windows of many series that close:
//! `cargo bench -p catchment-quantile --bench windows`.
//!
//! Sketches beside those of other crates are in the table `quantile-core` of `catchment-bench`.

mod closing;
mod rows;
mod timing;

use std::io;

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    rows::run(out)?;
    closing::run(out)
}
