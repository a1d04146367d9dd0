//! See `catchment_fuzzing::capture_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::capture_reader(input));
