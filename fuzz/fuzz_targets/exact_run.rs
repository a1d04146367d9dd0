//! See `catchment_fuzzing::exact_run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::exact_run(input));
