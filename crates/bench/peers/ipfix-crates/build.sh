#!/usr/bin/env bash
# Builds the peer and prints the path of its program. CATCHMENT_PEER_IPFIX_TARGET is the folder to build in.
set -eu
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
target="${CATCHMENT_PEER_IPFIX_TARGET:-${XDG_CACHE_HOME:-$HOME/.cache}/catchment/peer-ipfix-crates}"
CARGO_TARGET_DIR="$target" cargo build --release --manifest-path "$here/Cargo.toml" >&2
echo "$target/release/catchment-peer-ipfix-crates"
