#!/usr/bin/env bash
# Makes the recordings of this folder anew: ./make.sh [FOLDER]   (default: this folder)
#
# Everything runs in a network namespace of its own that has nothing but a loopback interface, and a host name of its
# own (edge01): no packet leaves the machine, none of its own traffic is recorded, and all processes end with it.
# Needs: haproxy softflowd dumpcap (wireshark-common) rsyslogd logger unshare ip python3.
# RSYSLOG_ROOT=DIR uses an rsyslog unpacked there with `dpkg -x`, where its package cannot be installed.
set -euo pipefail

requests=520
here=$(cd "$(dirname "$0")" && pwd)

if [[ ${CATCHMENT_INSIDE:-} != yes ]]; then
    out=$(mkdir -p "${1:-$here}" && cd "${1:-$here}" && pwd)
    as_root=()
    [[ $(id -u) == 0 ]] || as_root=(--user --map-root-user)
    # A PID namespace, so that whatever is still running is ended with the script.
    CATCHMENT_INSIDE=yes TZ=UTC LC_ALL=C exec unshare "${as_root[@]}" --net --uts --pid --fork --kill-child \
        bash "$here/make.sh" "$out"
fi

out=$1
hostname edge01
ip link set lo up
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

rsyslogd=(rsyslogd)
if [[ -n ${RSYSLOG_ROOT:-} ]]; then
    libraries=$(dirname "$(find "$RSYSLOG_ROOT" -name 'libestr.so.0' | head -n 1)")
    modules=$(dirname "$(find "$RSYSLOG_ROOT" -name imudp.so | head -n 1)")
    rsyslogd=(env "LD_LIBRARY_PATH=$libraries" "$RSYSLOG_ROOT/usr/sbin/rsyslogd" -M "$modules")
fi

# Waits until a command succeeds, at most ten seconds.
await() {
    local tries
    for tries in $(seq 100); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "make.sh: gave up waiting for: $*" >&2
    exit 1
}

# Starts a capture and waits until it runs; its process id is left in $!.
record() {
    local file=$1 filter=$2
    dumpcap -q -i lo -P -s "${3:-0}" -f "$filter" -w "$file" 2>"$file.messages" &
    await grep -q '^File:' "$file.messages"
}

listens() { [[ -n $(ss -Hln "sport = :$1") ]]; }

# --- traffic through the proxy, and its log ---
python3 "$here/traffic.py" servers &
servers=$!
"${rsyslogd[@]}" -n -C -i "$work/rsyslog.pid" -f "$here/rsyslog.conf" &
rsyslog=$!
for port in 5514 8081 8082 8083 9000 53; do await listens "$port"; done
record haproxy.pcap 'udp dst port 5514'
log_capture=$!
record traffic.pcap 'not port 5514' 128
traffic_capture=$!
haproxy -db -f "$here/haproxy.cfg" 2>haproxy.messages &
haproxy=$!
await listens 8080

python3 "$here/traffic.py" clients "$requests" &
clients=$!
while IFS='|' read -r priority tag process text; do
    logger --rfc3164 -n 127.0.0.1 -P 5514 -d -p "$priority" -t "$tag" --id="$process" -- "$text"
    sleep 0.15
done <"$here/host-messages.txt"
wait "$clients"

kill -USR1 "$haproxy"
wait "$haproxy" || true
sleep 1
kill -INT "$log_capture" "$traffic_capture"
wait "$log_capture" "$traffic_capture"
kill "$rsyslog" "$servers"
wait "$rsyslog" || true

# --- flows of that traffic ---
python3 "$here/traffic.py" sink 2055 &
sink=$!
await listens 2055
record flows.pcap 'udp dst port 2055'
flow_capture=$!
softflowd -r traffic.pcap -n 127.0.0.1:2055 -d -6 -p "$work/softflowd.pid" -c none -v 10 -A milli 2>softflowd.messages
sleep 1
kill -INT "$flow_capture"
wait "$flow_capture"
kill "$sink"

install -m 644 flows.pcap haproxy.log haproxy.pcap syslog.log "$out/"
cd "$out"
wc -lc haproxy.log syslog.log
wc -c flows.pcap haproxy.pcap
