//! See `catchment_fuzzing::kll_asapv1`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::kll_asapv1(input));
