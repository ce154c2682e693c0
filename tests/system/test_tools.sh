#!/bin/bash
# SPDX-License-Identifier: MIT
# npuemu-smi, npuemu-perf and npuemu-ctl as a user runs them: help, bad command
# lines, JSON, the data check (and that it can fail), faults, dead processes,
# a damaged board.
#
# BUILD is the build folder (default build); NPUEMU_BOARD names the boards made
# here.  Exit code 0 when all passed, else 1.
set -u
SRC=${SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-$SRC/build}
smi=$BUILD/bin/npuemu-smi
perf=$BUILD/bin/npuemu-perf
ctl=$BUILD/bin/npuemu-ctl
for tool in "$smi" "$perf" "$ctl"; do
	[[ -x $tool ]] && continue
	echo "test_tools: $tool is not there: run make first, or set BUILD" >&2
	exit 1
done
if ! command -v python3 >/dev/null; then
	echo 'test_tools: skipped, no python3'
	exit 77
fi

export NPUEMU_BOARD=${NPUEMU_BOARD:-test-tools-$$}
board=$NPUEMU_BOARD
# The kernel's board is no file: it is always there, and cannot be damaged.
kernel=
if [[ ${NPUEMU_HOST-} == kernel ]]; then
	kernel=1
	board=kernel
fi
file=/dev/shm/npuemu-$(id -u)-$board
tmp=$(mktemp -d) || exit 1
passed=0 failed=0 rc=0

finish()
{
	[[ -n ${holder-} ]] && kill -9 "$holder" 2>/dev/null
	"$ctl" reset >/dev/null 2>&1
	rm -rf "$tmp"
}
trap finish EXIT

ok()	# ok WHAT COMMAND...: a check of what the last run left
{
	local what=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAILED: $what"
	echo "  exit code $rc, stdout:"
	head -c 1500 "$tmp/out" | sed 's/^/    /'
	echo '  stderr:'
	head -c 1500 "$tmp/err" | sed 's/^/    /'
}

run()	# run COMMAND...: leaves $rc, $tmp/out and $tmp/err
{
	timeout -k 5 60 "$@" </dev/null >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

out_has() { grep -Eq -- "$1" "$tmp/out"; }
err_has() { grep -Eq -- "$1" "$tmp/err"; }
rc_is() { [[ $rc == "$1" ]]; }

# json WHAT EXPRESSION: true of the JSON object d in stdout?  Looked at in the
# end by one python3, as starting it takes longer than most of what is tested.
jsons=0
json()
{
	local dir=$tmp/json.$jsons
	jsons=$((jsons + 1))
	mkdir "$dir"
	cp "$tmp/out" "$tmp/err" "$dir"
	printf '%s' "$1" >"$dir/what"
	printf '%s' "$2" >"$dir/expression"
}

check_jsons()	# prints what failed, last how many passed and failed
{
	python3 -I -S - "$tmp" "$jsons" <<'PYTHON'
import json, sys
passed = failed = 0
for i in range(int(sys.argv[2])):
    def read(name):
        return open(f"{sys.argv[1]}/json.{i}/{name}").read()
    try:
        d = json.loads(read("out"))
        bad = "" if eval("(" + read("expression") + ")") else "it is not so"
    except Exception as e:
        bad = repr(e)
    if not bad:
        passed += 1
        continue
    failed += 1
    print(f"FAILED: {read('what')}: {bad}\n{read('out')[:1500]}\n{read('err')[:1500]}")
print(passed, failed)
PYTHON
}

# Short runs: this is about right or wrong.
quick=(--repeats 2 --iterations 200 --warmup 20)

# --- help and bad command lines --------------------------------------------
for tool in "$smi" "$perf" "$ctl"; do
	name=${tool##*/}
	run "$tool" --help
	ok "$name --help" rc_is 0
	ok "$name --help has an example" out_has '^Example'
	ok "$name --help names its options" out_has '--json'
	run "$tool" --version
	ok "$name --version" out_has "^$name [0-9]+\.[0-9]+"
	run "$tool" --jsno
	ok "$name: unknown option" rc_is 2
	ok "$name: unknown option, what was meant" err_has "'--jsno'.*did you mean '--json'"
	ok "$name: unknown option, where to look" err_has "$name --help"
	run "$tool" --board
	ok "$name: option without its value" rc_is 2
	man=$SRC/Documentation/man/$name.1
	[[ -d $SRC/Documentation ]] || continue	# the sandbox has no manual
	ok "$name has a man page" test -s "$man"
	for opt in $("$tool" --help | grep -Eo '(^|[ ,])--[a-z][a-z-]+' | tr -d ' ,' | sort -u); do
		ok "$name.1 explains $opt" grep -Fq -- "${opt//-/\\-}" "$man"
	done
done

while read -r -a words; do
	run "$perf" "${words[@]}"
	ok "npuemu-perf ${words[*]}: exit code 2" rc_is 2
	ok "npuemu-perf ${words[*]}: a message" err_has '^npuemu-perf: .+'
done <<'BAD'
--latency
fly
write read
write --latency --rate
write --sizes 8..
write --sizes 16M..8
write --sizes 0
write --depth 100
write --signal 250
write --threads 0
write --threads x
faa --sizes 16
notify --self
write --type fp32
reduce --type fp64
reduce --type fp32 --sizes 6
write --flip-byte 0 --no-check
write --devices 0,999
BAD

while read -r -a words; do
	run "$perf" collectives "${words[@]}"
	ok "npuemu-perf collectives ${words[*]}: exit code 2" rc_is 2
	ok "npuemu-perf collectives ${words[*]}: a message" err_has '^npuemu-perf collectives: .+'
done <<'BAD'
fly
--json fly
allreduce --ranks 0
allreduce -n 129
allreduce -n x
allreduce --type int128
allreduce --type fp65
allreduce --type fp32,
allreduce --op xor
allgather --op sum
allreduce --root 0
broadcast -n 4 --root 4
sendrecv -n 1
allreduce -b 8 -s 8
allreduce -b 16 -e 8
allreduce -b 8 -e 16 -f 1
allreduce -s 0
allreduce --algo fast
allreduce --threads --processes
allreduce --latency
allreduce --flip-byte 8 -s 8
allreduce --flip-byte 0 --no-check
allreduce --flip-rank 1
barrier --flip-byte 0
BAD
run "$perf" collectives --help
ok 'collectives --help' rc_is 0
cp "$tmp/out" "$tmp/help"
for opt in $(grep -Eo '(^|[ ,])--[a-z][a-z-]+' "$tmp/help" | tr -d ' ,' | sort -u); do
	[[ -d $SRC/Documentation ]] || continue
	ok "npuemu-perf.1 explains $opt of collectives" \
		grep -Fq -- "${opt//-/\\-}" <(sed -n '/^.SH COLLECTIVES/,/^.SH DATA/p' \
		"$SRC/Documentation/man/npuemu-perf.1")
done

while read -r -a words; do
	run "$ctl" "${words[@]}"
	ok "npuemu-ctl ${words[*]}: exit code 2" rc_is 2
	ok "npuemu-ctl ${words[*]}: a message" err_has '^npuemu-ctl: .+'
done <<'BAD'
explode
list too
inject
inject --kind magic
inject --kind status
inject --kind status --status 9.9
inject --kind drop --status 3.2
inject --kind delay
inject --kind dead-peer
inject --kind drop --rate 2
inject --kind drop --rate 0
load --devices 0
load --devices x
load --param noise
load --param =1
load --machine 950 one.ko two.ko
unload now
unplug
unplug 0 1
unplug first
BAD

run "$ctl" load "$tmp/none.ko"
ok 'load of a file that is not there: exit code 3' rc_is 3
ok 'load of a file that is not there: its name' err_has "$tmp/none.ko"

# --- no board --------------------------------------------------------------
"$ctl" reset >/dev/null 2>&1
if [[ -z $kernel ]]; then
run "$smi"
ok 'smi without a board: exit code 3' rc_is 3
ok 'smi without a board: a message' err_has "there is no board '$board'"
ok 'smi makes no board' test ! -e "$file"
run "$smi" --json
ok 'smi --json without a board: exit code 3' rc_is 3
run "$ctl" reset
ok 'reset without a board: exit code 3' rc_is 3
run "$ctl" clear
ok 'clear without a board: exit code 3' rc_is 3
fi

# --- perf ------------------------------------------------------------------
for test in write read notify send copy reduce; do
	for mode in --latency --rate; do
		run "$perf" $test $mode --sizes 8,4K,100K "${quick[@]}" --json
		ok "perf $test $mode: exit code 0" rc_is 0
		json "perf $test $mode: JSON" '
d["data_check"] == "passed" and [r["size"] for r in d["results"]] == [8, 4096, 102400]
and all(r["count"] >= 400 and r["seconds"] > 0 for r in d["results"])
and all(0 < r["min_ns"] <= r["p50_ns"] <= r["p99_ns"] <= r["max_ns"]
	if d["mode"] == "latency" else r["mmsg_per_s"] > 0 for r in d["results"])'
	done
done
for test in faa cas; do
	for mode in --latency --rate; do
		run "$perf" $test $mode --sizes 4,8 "${quick[@]}"
		ok "perf $test $mode: exit code 0" rc_is 0
	done
done
# Every type with every operation, every engine with both.
engines=(sdma udma)
i=0
for type in int8 int16 int32 uint8 uint16 uint32 fp16 bf16 fp32; do
	for op in sum max min; do
		engine=${engines[i++ % 2]}
		run "$perf" reduce --op $op --engine "$engine" --type $type --sizes 8,1K \
			--repeats 1 --iterations 20 --warmup 5
		ok "perf reduce $op $type by $engine" rc_is 0
	done
done
run "$perf" write --rate --sizes 8 "${quick[@]}" --signal 16 --batch 8 --depth 64 --slots 4
ok 'perf write, a completion every 16' rc_is 0
run "$perf" write --bandwidth "${quick[@]}" --iterations 8
ok 'perf --bandwidth with its own sizes' out_has '^ *16 MiB +[0-9]+ +[0-9.]+'
run "$perf" write --rate --sizes 8,64K "${quick[@]}" --threads 2 --processes 2 --json
json 'perf write, two processes of two threads' \
	'all(r["count"] >= 2 * 4 * 200 for r in d["results"])'
run "$perf" notify --sizes 8 "${quick[@]}" --threads 2 --processes 2 --sleep
ok 'perf notify, two pairs of two threads, asleep' rc_is 0
run "$perf" write --rate --sizes 8 "${quick[@]}" --self
ok 'perf write to itself' rc_is 0
run "$perf" write --sizes 8 --repeats 3 --seconds 0.1
ok 'perf by time' out_has '^ +8 B +[0-9]+ +[0-9.]+'
NPUEMU_ASYNC=1 run "$perf" write --rate --sizes 8 "${quick[@]}"
ok 'perf, engine threads only' rc_is 0

# The check must be able to fail.
for test in write read copy reduce faa notify send; do
	run "$perf" $test --rate --sizes 8 "${quick[@]}" --flip-byte 5
	ok "perf $test finds a wrong byte: exit code 1" rc_is 1
	ok "perf $test says where" err_has 'wrong data in .*address 0x[0-9a-f]+, offset [0-9]+: expected 0x[0-9a-f]+, found 0x'
done
run "$perf" write --sizes 4K "${quick[@]}" --flip-byte -1
ok 'perf finds a wrong byte before the destination' rc_is 1
ok 'perf says that it is a guard' err_has 'guard'
run "$perf" write --sizes 4K "${quick[@]}" --flip-byte 4096
ok 'perf finds a wrong byte after the destination' rc_is 1
run "$perf" notify --latency --sizes 64 "${quick[@]}" --flip-byte 63
ok 'perf notify finds a wrong byte in an answer' rc_is 1

# --- perf collectives ------------------------------------------------------
brief=(--repeats 2 --iterations 3 --warmup 1)
names='{"allreduce", "reduce", "reducescatter", "reducescatterv", "broadcast", "scatter",
	"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallvc", "barrier",
	"sendrecv", "batchsendrecv"}'
for how in --processes --threads; do
	for n in 1 2 5; do
		run "$perf" collectives -n $n $how "${brief[@]}" --sizes 8,1000,70K --deep --json
		ok "collectives $how, $n ranks: exit code 0" rc_is 0
		json "collectives $how, $n ranks: each of them, all right" '
{r["collective"] for r in d["results"]} == '"$names"' - ({"sendrecv"} if '$n' < 2 else set())
and d["complete"] and d["ranks"] == '$n' and "--" + d["ranks_are"] == "'$how'"
and all(r["check"] == "passed" and r["wrong_ranks"] == 0 and r["time_us_min"] <= r["time_us"]
	<= r["time_us_max"] and r["deep_time_us"] > 0
	and abs(r["alg_gb_s"] * r["time_us"] * 1e3 - r["size"]) <= 1 + r["size"] / 1e3
	for r in d["results"] if r["collective"] != "barrier")'
	done
done
# Every type with every reduction; every root; sizes as hccl_test counts them.
run "$perf" collectives -n 3 --threads --repeats 1 --iterations 1 --warmup 0 --sizes 200 \
	--type all --op all --root all --json
ok 'collectives, all types, reductions and roots: exit code 0' rc_is 0
json 'collectives, all types, reductions and roots' '
all(r["check"] == "passed" for r in d["results"])
and len({(r["type"], r["op"]) for r in d["results"] if r["collective"] == "allreduce"}) == 48
and len({(r["type"], r["root"]) for r in d["results"] if r["collective"] == "broadcast"}) == 51
and len({r["type"] for r in d["results"] if r["collective"] == "alltoall"}) == 17'
run "$perf" collectives allreduce allgather barrier -n 4 "${brief[@]}" -b 16 -e 1K -f 8 --json
json 'collectives: sizes by --min, --max, --factor; counts' '
[(r["collective"], r["size"], r["count"]) for r in d["results"]] ==
[("allreduce", 16, 4), ("allreduce", 128, 32), ("allreduce", 1024, 256),
 ("allgather", 16, 1), ("allgather", 128, 8), ("allgather", 1024, 64), ("barrier", 0, 0)]
and all(abs(r["bus_gb_s"] - r["alg_gb_s"] * f) <= 1e-8
	for r, f in zip(d["results"], 3 * [1.5] + 3 * [0.75]))'
for algo in ring rhd nhr nb pairwise mesh-one-shot mesh-two-shot 'level0:NA;level1:ring'; do
	run "$perf" collectives -n 5 --threads "${brief[@]}" --sizes 64,100K --algo "$algo"
	ok "collectives --algo $algo" rc_is 0
done
run "$perf" collectives allreduce -n 2 "${brief[@]}" --no-check
ok 'collectives --no-check' out_has '^allreduce +8 B +2 +fp32 +sum .* off$'

# The check must be able to fail, on any rank.
for rank in 0 3; do
	for how in --processes --threads; do
		run "$perf" collectives alltoall -n 4 $how "${brief[@]}" --sizes 4K \
			--flip-byte 1030 --flip-rank $rank
		ok "collectives finds a wrong byte on rank $rank: exit code 1" rc_is 1
		ok "collectives says where" err_has "wrong data on rank $rank: alltoall fp32 4 KiB, .*byte 1030 \(element 257\): expected 0x[0-9a-f]{8}, found 0x"
		ok "collectives says so in the table" out_has '^alltoall .* failed$'
	done
done

# A rank that dies is no wrong data; nothing of it stays.  It dies when all are at the
# collectives that are timed, as a thousand WQEs show: one is less than a hundred.
timeout -k 5 60 "$perf" collectives allreduce -n 4 --warmup 0 --repeats 1 \
	--iterations 100000000 --sizes 1M >"$tmp/out" 2>"$tmp/err" </dev/null &
holder=$!
first=
for _ in {1..500}; do
	"$smi" --json >"$tmp/smi" 2>/dev/null
	if grep -Eq '"wqes": *[0-9]{4}' "$tmp/smi"; then
		first=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$tmp/smi" | sed -n 4p)
		break
	fi
	sleep 0.1
done
kill -9 "${first:-$holder}"
wait "$holder"
rc=$?
holder=
ok 'collectives, a rank was killed: exit code 3' rc_is 3
ok 'collectives says which rank was killed' err_has 'rank [0-3]: was killed by signal 9'
ok 'collectives says what the others were at' err_has 'rank [0-3]: allreduce: .*has died'
run "$perf" collectives allreduce -n 4 "${brief[@]}"
ok 'collectives after that' rc_is 0
HCCL_ALGO=sideways run "$perf" collectives allreduce -n 2 "${brief[@]}"
ok 'collectives, what HCCL refuses: exit code 3' rc_is 3
ok 'collectives, what HCCL refuses: its words' err_has 'HcclCommInitRootInfo: .*HCCL_ALGO'

# --- smi -------------------------------------------------------------------
"$perf" write --rate --sizes 1M --seconds 60 --warmup 0 --repeats 1 --timeout 60 \
	>"$tmp/perf" 2>&1 </dev/null &
holder=$!
for _ in {1..100}; do
	"$smi" --json >"$tmp/out" 2>/dev/null &&
		out_has '"wqes": [1-9][0-9]{2}' && break
	sleep 0.1
done
run "$smi" --json
ok 'smi --json: exit code 0' rc_is 0
json 'smi --json: both processes, memory and queues' '
len(d["processes"]) == 2 and len(d["devices"]) >= 2
and all(p["comm"] == "npuemu-perf" and p["segments"] == 1 and p["buffers"] == 1
	and p["hbm_used"] > 2 << 20 for p in d["processes"])
and sum(len(p["queues"]) for p in d["processes"]) == 2
and any(q["state"] == "READY" and q["bytes"] > 1 << 20 and q["type"] == "UDMA"
	for p in d["processes"] for q in p["queues"])
and d["devices"][0]["hbm_used"] > 0 and d["devices"][0]["queues"] == 1
and d["board"]["name"] == "'"$board"'"'
run "$smi" --queues
ok 'smi --queues: a queue' out_has '\| +UDMA +\| +READY +\||\| UDMA \| READY \|'
ok 'smi: a process' out_has 'npuemu-perf'
run "$smi" --watch 0.1 --count 3 --json
ok 'smi --watch: three objects, a line each' test "$(wc -l <"$tmp/out")" = 3
run "$ctl" list --json
json 'list: the board is in use' \
	'[b["state"] for b in d if b["board"] == "'"$board"'"] == ["in use"]'

# --- dead processes --------------------------------------------------------
pids=$("$smi" --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
# shellcheck disable=SC2086 # several
kill -9 $pids
wait "$holder"
rc=$?
cp "$tmp/perf" "$tmp/err"
: >"$tmp/out"
ok 'perf whose processes were killed: exit code 3' rc_is 3
ok 'perf says who was killed' err_has 'was killed by signal 9'
holder=
run "$ctl" reap --json
ok 'reap: exit code 0' rc_is 0
json 'reap: at most the two' '0 <= d["reaped"] <= 2'
run "$smi" --json
json 'nothing is left of them' '
not d["processes"] and all(v["hbm_used"] == 0 and v["hbm_backed"] == 0 for v in d["devices"])'
run "$ctl" reap
ok 'reap again: nothing' out_has ': 0 dead processes'

# --- faults ----------------------------------------------------------------
run "$ctl" inject --kind status --status REM_ACCESS_ABORT
ok 'inject: exit code 0' rc_is 0
run "$perf" write --sizes 8 "${quick[@]}"
ok 'inject makes perf fail: exit code 3' rc_is 3
ok 'inject makes perf fail: the status' err_has 'REM_ACCESS_ABORT \(3\.2\)'
run "$ctl" clear --json
json 'clear: JSON' 'd["cleared"] is True'
run "$perf" write --sizes 8 "${quick[@]}"
ok 'clear heals' rc_is 0

run "$ctl" inject --kind status --status 2.1 --device 1 --json
json 'inject --json' 'd["kind"] == "status" and d["device"] == 1 and "LOC_LEN" in d["status"]'
run "$perf" write --sizes 8 "${quick[@]}"
ok 'a fault of device 1 does not touch device 0' rc_is 0
run "$perf" write --sizes 8 "${quick[@]}" --devices 1,0
ok 'but device 1: exit code 3' rc_is 3
ok 'but device 1: the status' err_has '\(2\.1\)'
"$ctl" clear >/dev/null

run "$ctl" inject --kind status --status 3.4 --rate 0.01 --seed 7
run "$perf" write --rate --sizes 8 --repeats 1 --iterations 20000
ok 'one in a hundred is found' err_has '\(3\.4\)'
"$ctl" clear >/dev/null

run "$ctl" inject --kind delay --delay-us 2000
run "$perf" write --sizes 8 --repeats 1 --iterations 20 --warmup 2 --json
json 'a delay shows' 'd["results"][0]["p50_ns"] > 1.9e6'
"$ctl" clear >/dev/null

run "$ctl" inject --kind poison
run "$perf" read --sizes 8 "${quick[@]}"
ok 'poison shows' err_has '_DATA_POISON'
"$ctl" clear >/dev/null

run "$ctl" inject --kind dead-peer --peer-pid 1
ok 'a peer that is not on the board: exit code 3' rc_is 3
ok 'a peer that is not on the board: a message' err_has 'process 1 is not on the board'
for _ in {1..16}; do
	"$ctl" inject --kind delay --delay-us 1 --count 1 >/dev/null
done
run "$ctl" inject --kind delay --delay-us 1
ok 'a 17th fault: exit code 3' rc_is 3
"$ctl" clear >/dev/null
run "$perf" write --sizes 8 "${quick[@]}"
ok 'all faults are gone' rc_is 0

# --- a damaged board -------------------------------------------------------
if [[ -z $kernel ]]; then
# The file is large and mostly holes: its head and the first slots' will do.
head -c 1M /dev/urandom | dd of="$file" conv=notrunc bs=64K iflag=fullblock status=none
run "$smi"
ok 'smi on a damaged board: exit code 3' rc_is 3
ok 'smi on a damaged board: what to do' err_has "npuemu-ctl reset --board $board"
run "$perf" write --sizes 8 "${quick[@]}"
ok 'perf on a damaged board: exit code 3' rc_is 3
run "$ctl" list --json
json 'list: the board is damaged' \
	'[b["state"] for b in d if b["board"] == "'"$board"'"] == ["damaged"]'
run "$ctl" reset
ok 'reset: exit code 0' rc_is 0
ok 'reset says what it removed' out_has "removed board $board .*damaged"
ok 'reset removed the file' test ! -e "$file"
run "$perf" write --sizes 8 "${quick[@]}"
ok 'after reset the board is made anew' rc_is 0
: >"$file"
run "$ctl" reset --json
json 'reset of an empty file' 'd["removed"] is True'
else
run "$ctl" reset --json
json 'reset of the devices' 'd["reset"] is True and d["board"] == "kernel"'
fi

check_jsons >"$tmp/jsons"
sed '$d' "$tmp/jsons"
read -r p f < <(tail -n 1 "$tmp/jsons")
passed=$((passed + p))
failed=$((failed + f))
if ((p + f != jsons)); then
	echo "FAILED: only $((p + f)) of $jsons JSON outputs were looked at"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
((failed == 0))
