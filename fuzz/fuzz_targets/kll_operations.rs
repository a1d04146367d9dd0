//! See `catchment_fuzzing::kll_operations`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::kll_operations(input));
