//! See `catchment_fuzzing::ipfix_lists`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::ipfix_lists(input));
