//! See `catchment_fuzzing::ipfix_template_cache`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::ipfix_template_cache(input));
