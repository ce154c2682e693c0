#!/bin/bash
# SPDX-License-Identifier: MIT
# npuemu-replay: exact numbers of the shipped trace, finite pools against an LRU
# model of our own, chaos, every exit code, and what happens when one of the two
# processes dies.
set -u

BUILD=${BUILD:-build}
replay=$BUILD/bin/npuemu-replay
trace=$BUILD/share/npuemu/mooncake_fast25_conversation_trace.jsonl
work=$(mktemp -d "${TMPDIR:-/tmp}/replay-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# Sanitizers make every byte dearer, and the whole trace is 1.2 GB verified.
whole=1
case $BUILD in
*/asan | */tsan) whole= ;;
esac

bad()
{
	echo "FAIL: $*" >&2
	sed 's/^/    /' "$work/err" >&2
	failures=$((failures + 1))
}

# run CODE ARGUMENT...: its output is left in $work/out and $work/err
run()
{
	local want=$1 rc
	shift
	timeout 100 "$replay" "$@" >"$work/out" 2>"$work/err" </dev/null
	rc=$?
	((rc == want)) && return
	bad "npuemu-replay $*: exit code $rc, not $want"
	return 1
}

# field NAME: of the JSON object in $work/out, which has one on each line.  (A
# Python for each would take longer than the replays; one parses a whole object
# below.)
field()
{
	local value
	value=$(sed -n "s/^  \"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$work/out")
	[[ -n $value ]] && echo "$value"
}

# expect NAME=VALUE...
expect()
{
	local pair got
	for pair; do
		got=$(field "${pair%%=*}") || { bad "no ${pair%%=*} in the JSON"; continue; }
		[[ $got == "${pair#*=}" ]] || bad "${pair%%=*} is $got, not ${pair#*=}"
	done
}

# says TEXT: stderr holds it
says()
{
	grep -qF -- "$1" "$work/err" || bad "no message like: $1"
}

# --- numbers -----------------------------------------------------------------
if run 0 --json --model micro --pool-blocks 0 --requests 1000; then
	expect requests=1000 block_refs=27305 block_hits=5791 token_refs=13732944 \
		token_hits=2962776 blocks_moved=21514 bytes_moved=$((21514 * 4096)) \
		bytes_verified=$((27305 * 4096)) verify_errors=0 model=micro \
		pool_blocks=21514
	python3 - "$work/out" <<'END' || bad 'JSON, or its WQEs, doorbells and CQEs'
import json, sys
r = json.load(open(sys.argv[1]))
ok = (21514 <= r["wqes"] <= 21514 + 1000 and 0 < r["doorbells"] < r["wqes"] / 4 and
      1000 <= r["cqes"] < r["wqes"] / 4 and r["seconds"] > 0 and r["block_hits"] == 5791 and
      abs(r["gbytes_per_s"] - r["bytes_moved"] / 1e9 / r["seconds"]) < 0.01)
sys.exit(not ok)
END
fi
if [[ -n $whole ]]; then
	run 0 --json --model micro --pool-blocks 0 &&
		expect requests=12031 block_refs=288500 block_hits=105710 \
			token_refs=144793823 token_hits=54098411 blocks_moved=182790 \
			bytes_moved=$((182790 * 4096)) verify_errors=0
fi
# every layer of a block is one WQE
run 0 --json --model tiny --requests 20 &&
	expect bytes_moved=$(($(field blocks_moved) * 131072)) \
		wqes=$(($(field blocks_moved) * 4))
run 0 --json --model small --requests 3 &&
	expect bytes_moved=$(($(field blocks_moved) << 20)) verify_errors=0

# --- finite pools, against a model that shares nothing with ours ----------------
cat >"$work/lru.py" <<'END'
"""For each "REQUESTS POOL DEPTH" on stdin adds the hits, in blocks and tokens, of
so many requests with a pool that evicts the least recently used block; what a
request finds on arrival is kept for it."""
import json, sys
from collections import OrderedDict
trace = [json.loads(line) for line in open(sys.argv[1])]
def hits(n, cap):
    held, blocks, tokens = OrderedDict(), 0, 0
    for request in trace[:n]:
        ids, left = request["hash_ids"], request["input_length"]
        for i in ids:
            if i in held:
                held.move_to_end(i)
        for i in ids:
            size = min(left, 512)
            left -= size
            if i in held:
                blocks, tokens = blocks + 1, tokens + size
            elif len(held) == cap:
                held.popitem(last=False)
            held[i] = True
            held.move_to_end(i)
    return blocks, tokens
for line in sys.stdin:
    print(line.strip(), *hits(*map(int, line.split()[:2])))
END
python3 "$work/lru.py" "$trace" <<'END' >"$work/lru" || bad 'the LRU model'
500 237 1
500 237 64
600 1024 4
600 4096 3
1500 4096 16
END
[[ $(wc -l <"$work/lru") -eq 5 ]] || bad 'the LRU model'
while read -r n cap depth hits tokens; do
	run 0 --json --model micro --requests "$n" --pool-blocks "$cap" --depth "$depth" &&
		expect block_hits="$hits" token_hits="$tokens" pool_blocks="$cap" \
			verify_errors=0
done <"$work/lru"

# --- variations that must not change the outcome -----------------------------
run 0 --json --model micro --requests 300 --pool-blocks 0 --devices 1,1 &&
	expect block_hits=676 verify_errors=0
run 0 --json --model micro --requests 300 --pool-blocks 0 --devices 3,2 --seed 77 &&
	expect block_hits=676 verify_errors=0 prefill_device=3 decode_device=2
for seed in 1 2 3; do
	run 0 --json --model micro --requests 150 --pool-blocks 300 --chaos $seed &&
		expect verify_errors=0
	run 0 --json --model tiny --requests 10 --chaos $seed && expect verify_errors=0
done

# A request without misses still gets its notify; one without blocks, too.
cat >"$work/hits.jsonl" <<'END'
{"timestamp": 0, "input_length": 1000, "hash_ids": [1, 2]}
{"timestamp": 0, "input_length": 1000, "hash_ids": [1, 2]}
{"timestamp": 5, "input_length": 0, "hash_ids": []}
{"timestamp": 5, "input_length": 1400, "hash_ids": [2, 1, 9007199254740993]}
END
run 0 --json --trace "$work/hits.jsonl" --model tiny &&
	expect requests=4 block_refs=7 block_hits=4 token_refs=3400 token_hits=2024 \
		blocks_moved=3 wqes=14 verify_errors=0

# --- the table ----------------------------------------------------------------
run 0 --model micro --requests 50 --pool-blocks 0
for word in requests hits tokens 'blocks moved' 'bytes moved' WQEs doorbells CQEs GB/s \
	'verify errors'; do
	grep -qF "$word" "$work/out" || bad "no $word in the table"
done
says '50/50 requests'
run 0 --help
grep -q '^Example' "$work/out" || bad 'no example in --help'
run 0 --version

# --- verification finds a single flipped bit: code 1 ----------------------------
run 1 --json --model tiny --requests 9 --sabotage 9 && expect verify_errors=1 requests=9
says 'decode: request 9, block '
run 1 --model micro --requests 9 --sabotage 1
# a block that was spoiled while it lay there is found when it is a hit
run 1 --json --trace "$work/hits.jsonl" --sabotage 1 && expect verify_errors=3
says 'a hit'

# --- bad input: code 2, and what is wrong -----------------------------------------
run 2 --frobnicate && says frobnicate
run 2 stray && says stray
run 2 --requests 0 && says "--requests '0'"
run 2 --requests 12x && says "--requests '12x'"
run 2 --model gigantic && says 'micro tiny small'
run 2 --devices 5 && says 'as in 0,1'
run 2 --devices 0,4000 --requests 1 && says 'has devices 0..'
run 2 --depth 0 && says '1..64'
run 2 --chaos x && says "--chaos 'x'"
run 2 --requests 5 --sabotage 6 && says 'only 5 requests'
run 2 --requests 100 --pool-blocks 10 && says 'needs at least'
run 2 --trace "$work/none" && says "$work/none: cannot open"

# bad_trace WHERE SAYS LINE...
bad_trace()
{
	local where=$1 what=$2
	shift 2
	printf '%s\n' "$@" >"$work/bad.jsonl"
	run 2 --trace "$work/bad.jsonl" && says "$work/bad.jsonl:$where: $what"
}
good='{"timestamp": 9, "input_length": 5, "hash_ids": [1]}'
bad_trace 2:1 'an empty line' "$good" ''
bad_trace 2:7 'not JSON' "$good" '{"a": ?}'
bad_trace 2:15 'timestamp 8 is before' "$good" '{"timestamp": 8, "input_length": 5, "hash_ids": [1]}'
bad_trace 1:49 'hash_ids has 2 entries' '{"timestamp": 8, "input_length": 5, "hash_ids": [1, 2]}'
bad_trace 1:50 'hash_ids[0] is a string' '{"timestamp": 8, "input_length": 5, "hash_ids": ["1"]}'
bad_trace 3:34 'input_length is out of range' "$good" "$good" \
	'{"timestamp": 9, "input_length": -5, "hash_ids": [1]}'

# --- what cannot be carried out: code 3 --------------------------------------------
NPUEMU_HOST=kernel_of_a_machine_that_is_not_there run 3 --requests 1
says 'cannot open the board'
run 3 --model mla-61 --pool-blocks 0 --requests 12031
says 'fewer --pool-blocks'

# --- one of the two dies: the other says so, soon, with code 3 ----------------------
# start ARGUMENT...: sets $decode and $prefill once blocks are moving
start()
{
	local i
	"$replay" --model tiny "$@" >"$work/out" 2>"$work/err" </dev/null &
	decode=$!
	for ((i = 0; i < 100; i++)); do
		prefill=$(cat "/proc/$decode/task/$decode/children" 2>/dev/null) || prefill=
		prefill=${prefill%% *}
		[[ -n $prefill ]] && break
		sleep 0.02
	done
	sleep 0.4
}

# gone PID: ended, be it as a zombie of a stopped parent, within five seconds
gone()
{
	local i state
	for ((i = 0; i < 100; i++)); do
		state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || state=
		[[ -z $state || $state == Z ]] && return 0
		sleep 0.05
	done
	bad "process $1 is still there"
	kill -9 "$1"
}

# The dead have left nothing behind: no queue, no HBM, no physical memory.
clean_board()
{
	if ! "$BUILD/bin/npuemu-smi" --json >"$work/out" 2>"$work/smi"; then
		# the last one out takes the board along
		grep -q 'there is no board' "$work/smi" || bad "npuemu-smi: $(<"$work/smi")"
		return
	fi
	grep -Eq '"backed_bytes": 0,?$' "$work/out" || bad "$(grep '"backed_bytes"' "$work/out")"
	if grep -E '"(hbm_used|queues|processes)": [1-9]' "$work/out" >&2; then
		bad 'the board is not empty'
	fi
}

# ended CODE: of decode
ended()
{
	local rc
	gone "$decode"
	wait "$decode" 2>/dev/null
	rc=$?
	((rc == $1)) || bad "decode ended with $rc, not $1"
	gone "$prefill"
	clean_board
}

start
kill -9 "$prefill"
ended 3
says "prefill (pid $prefill) was killed by signal 9"

start
kill -9 "$decode"
ended 137
says "decode (pid $decode) has died"

start
kill -TERM "$decode"
ended 3
says 'signal 15'

start --timeout 2
kill -STOP "$decode"
gone "$prefill"
kill -CONT "$decode"
ended 3
says 'waited 2 s for the placement'

# The board is as good as new.
run 0 --json --model micro --requests 100 && expect verify_errors=0

((failures == 0)) || { echo "$failures failures"; exit 1; }
echo 'all of npuemu-replay behaves'
