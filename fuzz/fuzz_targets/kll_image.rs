//! See `catchment_fuzzing::kll_image`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::kll_image(input));
