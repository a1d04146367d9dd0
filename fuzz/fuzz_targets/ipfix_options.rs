//! See `catchment_fuzzing::ipfix_options`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::ipfix_options(input));
