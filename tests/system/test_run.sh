#!/bin/bash
# SPDX-License-Identifier: MIT
# npuemu-run as a user runs it: what ranks find in their environment, their output,
# input and exit codes, signals, ranks that fail or hang, a launcher that is killed,
# rank tables, and every value it refuses.
#
# BUILD is the build folder (default build); NPUEMU_BOARD names the boards made
# here.  Exit code 0 when all passed, else 1.
set -u
SRC=${SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-$SRC/build}
launcher=$BUILD/bin/npuemu-run
ctl=$BUILD/bin/npuemu-ctl
for tool in "$launcher" "$ctl"; do
	[[ -x $tool ]] && continue
	echo "test_run: $tool is not there: run make first, or set BUILD" >&2
	exit 1
done
if ! command -v python3 >/dev/null; then
	echo 'test_run: skipped, no python3'
	exit 77
fi

export NPUEMU_BOARD=${NPUEMU_BOARD:-test-run-$$}
# Its numbers are those of machine 950, and it makes boards of other machines too.
export NPUEMU_HOST=user
unset NPUEMU_MACHINE ASCEND_RT_VISIBLE_DEVICES RANK_TABLE_FILE
tmp=$(mktemp -d) || exit 1
export TMPDIR=$tmp/t	# where rank tables are made
mkdir "$TMPDIR"
passed=0 failed=0 rc=0
# Nobody else sleeps so long: how processes of this test are known.
mark=7$$

finish()
{
	local pid
	for pid in $(left); do
		kill -9 "$pid" 2>/dev/null
	done
	"$ctl" reset >/dev/null 2>&1
	NPUEMU_BOARD=$NPUEMU_BOARD-2 "$ctl" reset >/dev/null 2>&1
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

run()	# run ARGUMENT... of npuemu-run: leaves $rc, $tmp/out and $tmp/err
{
	timeout -k 5 60 "$launcher" "$@" </dev/null >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

begin()	# begin ARGUMENT...: the same in the background, as a terminal would start it
{
	: >"$tmp/out"
	env --default-signal=INT,QUIT "$launcher" "$@" \
		</dev/null >"$tmp/out" 2>"$tmp/err" &
	pid=$!
}

end()	# waits for it
{
	local i
	for ((i = 0; i < 300; i++)); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	((i < 300)) || kill -9 $pid
	wait $pid 2>/dev/null
	rc=$?
}

out_has() { grep -Eq -- "$1" "$tmp/out"; }
err_has() { grep -Eq -- "$1" "$tmp/err"; }
err_empty() { [[ ! -s $tmp/err ]]; }
silent() { ! err_has '^npuemu-run: '; }	# ranks may have said something
rc_is() { [[ $rc == "$1" ]]; }
is() { [[ $1 == "$2" ]]; }
sorted() { is "$(sort -V "$tmp/out")" "$1"; }
lines() { is "$(wc -l <"$tmp/out")" "$1"; }
no_folder() { is "$(find "$TMPDIR" -mindepth 1 | head -n 1)" ''; }

until_out()	# until_out N PATTERN: N lines have it, within 20 s
{
	local i
	for ((i = 0; i < 400; i++)); do
		[[ $(grep -Ec -- "$2" "$tmp/out") -ge $1 ]] && return 0
		sleep 0.05
	done
	return 1
}

left()	# the pids of sleepers of this test: one argument of theirs is the mark
{
	grep -lzx "$mark[0-9]*" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3
}

none_left()	# within 5 s
{
	local i
	for ((i = 0; i < 50; i++)); do
		[[ -z $(left) ]] && return 0
		sleep 0.1
	done
	return 1
}

# json FILE WHAT EXPRESSION: true of the JSON object d in FILE?
json()
{
	if python3 -I -S - "$1" "$3" <<'PYTHON'
import json, sys
d = json.loads(open(sys.argv[1]).read().strip().split("\n@@@\n")[-1])
sys.exit(0 if eval("(" + sys.argv[2] + ")") else 1)
PYTHON
	then
		ok "$2" true
	else
		ok "$2" false
		head -c 1500 "$1"
	fi
}

# --- help and bad command lines --------------------------------------------
run --help
ok 'help' rc_is 0
ok 'help has an example' out_has '^Example'
man=$SRC/Documentation/man/npuemu-run.1
if [[ -d $SRC/Documentation ]]; then	# the sandbox has no manual
	ok 'there is a man page' test -s "$man"
	for opt in $(grep -Eo '(^|[ ,])--[a-z][a-z-]+' "$tmp/out" | tr -d ' ,' | sort -u); do
		ok "npuemu-run.1 explains $opt" grep -Fq -- "${opt//-/\\-}" "$man"
	done
fi
run --version
ok 'version' out_has '^npuemu-run [0-9]+\.[0-9]+'
run --jsno true
ok 'unknown option' rc_is 2
ok 'unknown option, what was meant' err_has "'--jsno'.*did you mean '--json'"
run --devices
ok 'option without its value' rc_is 2
while read -r -a words; do
	run "${words[@]}"
	ok "${words[*]}: exit code 2" rc_is 2
	ok "${words[*]}: a message" err_has '^npuemu-run: .+'
	ok "${words[*]}: where to look" err_has "npuemu-run --help"
	ok "${words[*]}: nothing ran" lines 0
done <<'BAD'
-n 2
-n 0 echo
-n 1025 echo
-n x echo
-n -1 echo
-n 2x echo
--devices , echo
--devices 0, echo
--devices ,0 echo
--devices 0,,1 echo
--devices x echo
--devices 0-x echo
--devices 0- echo
--devices 3-1 echo
--devices -1 echo
--devices 0..3 echo
--devices 0;1 echo
--devices 0-99999 echo
--devices 99999999999 echo
--devices 8 echo
--devices 0,64 echo
--devices 0-8 echo
--servers 1 echo
--servers server echo
--servers server1 echo
--servers rack0 echo
--visible all echo
--rank-table 1.1 echo
--rank-table 2 echo
--port 0 echo
--port 65536 echo
--port http echo
--grace -1 echo
--grace soon echo
--timeout 0 echo
--timeout -5 echo
--timeout nan echo
--timeout 1h echo
--json=yes echo
--keep-going=1 echo
BAD
for opt in --devices --servers --output-dir; do
	run $opt '' echo
	ok "$opt with nothing: exit code 2" rc_is 2
done
run -n 1 ''
ok 'a program without a name' rc_is 2
run -b 'not/a/board' echo
ok 'a bad name of a board: exit code 3' rc_is 3
ok 'a bad name of a board: nothing ran' lines 0
NPUEMU_MACHINE=nonsense NPUEMU_BOARD=$NPUEMU_BOARD-2 run echo
ok 'no such machine: exit code 3' rc_is 3
ok 'no such machine: said once' is "$(grep -c nonsense "$tmp/err")" 1
ASCEND_RT_VISIBLE_DEVICES=x run echo
ok 'no visible device: exit code 3' rc_is 3
ok 'no visible device: why' err_has 'ASCEND_RT_VISIBLE_DEVICES'
TMPDIR=$tmp/none run echo
ok 'no place for the rank table: exit code 3' rc_is 3
ok 'no place for the rank table: what to do' err_has 'TMPDIR.*--no-rank-table'
TMPDIR=$tmp/none run --no-rank-table -n 1 echo ran
ok 'no place for the rank table, and none wanted' out_has ran
run --output-dir "$tmp/none/dir" echo
ok 'no place for the output: exit code 3' rc_is 3
ok 'nothing is left behind' no_folder

# --- the environment -------------------------------------------------------
show='echo $NPUEMU_RANK/$NPUEMU_RANK_SIZE/$NPUEMU_LOCAL_RANK/$NPUEMU_DEVICE/$NPUEMU_SERVER'
show+=' $RANK_ID/$RANK_SIZE/$DEVICE_ID $RANK/$WORLD_SIZE/$LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR'
run -n 3 sh -c "$show"
ok 'environment: exit code 0' rc_is 0
ok 'environment: nothing on stderr' err_empty
ok 'environment of three ranks' sorted \
'[0] 0/3/0/0/0 0/3/0 0/3/0/3 127.0.0.1
[1] 1/3/1/1/0 1/3/1 1/3/1/3 127.0.0.1
[2] 2/3/2/2/0 2/3/2 2/3/2/3 127.0.0.1'
run sh -c 'echo $RANK/$WORLD_SIZE'
ok 'without -n: a rank for each device' lines 8
run -n 2 sh -c 'echo "$NPUEMU_JOB $MASTER_PORT"'
ok 'the job and the port are the same for all' is "$(sed 's/^\[.\] //' "$tmp/out" | sort -u | wc -l)" 1
ok 'the job and the port look right' out_has '^\[0\] [0-9a-f]{16}-[0-9]+ [0-9]+$'
first=$(sed -n 's/^\[0\] //p' "$tmp/out")
run -n 2 sh -c 'echo "$NPUEMU_JOB $MASTER_PORT"'
ok 'another job is another' test "${first% *}" != "$(sed -n 's/^\[0\] \(.*\) .*/\1/p' "$tmp/out")"
run -n 1 --port 4711 sh -c 'echo "port $MASTER_PORT"'
ok '--port' out_has 'port 4711$'
begin -n 1 sh -c 'echo "port $MASTER_PORT"; exec sleep '$mark
until_out 1 port
cp "$tmp/out" "$tmp/first"
taken=$(sed 's/.*port //' "$tmp/first")
for _ in {1..10}; do
	"$launcher" -n 1 sh -c 'echo "port $MASTER_PORT"' </dev/null
done >"$tmp/ports" 2>&1
ok 'ports of jobs at the same time differ' is "$(grep -c "port $taken$" "$tmp/ports")" 0
ok 'and there were ports' is "$(grep -Ec 'port [0-9]+$' "$tmp/ports")" 10
kill $pid
end
(
	export PMI_RANK=9
	run -n 1 env
)
ok 'no variables of an MPI' is "$(grep -Ec 'OMPI_|PMI_' "$tmp/out")" 1
ok 'and those there are stay' out_has '^\[0\] PMI_RANK=9$'
run -n 2 --mpi-env sh -c \
	'echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE/$OMPI_COMM_WORLD_LOCAL_RANK $PMI_RANK/$PMI_SIZE'
ok '--mpi-env' sorted $'[0] 0/2/0 0/2\n[1] 1/2/1 1/2'
run -n 1 --board "$NPUEMU_BOARD-2" sh -c 'echo $NPUEMU_BOARD'
ok '--board goes on to ranks' out_has "$NPUEMU_BOARD-2\$"
NPUEMU_BOARD=$NPUEMU_BOARD-2 "$ctl" reset >/dev/null 2>&1

# --- devices and servers ---------------------------------------------------
devices() { sed -n 's/^\[\(.*\)\] dev \(.*\)/\1:\2/p' "$tmp/out" | sort -n | cut -d: -f2 | tr '\n' ' '; }
dev=(sh -c 'echo "dev $NPUEMU_DEVICE"')
run -n 8 --devices 0,1,4-7 "${dev[@]}"
ok 'a list of devices, round robin' is "$(devices)" '0 1 4 5 6 7 0 1 '
run --devices 6,2,2 "${dev[@]}"
ok 'devices in the order of the list, twice if it says so' is "$(devices)" '6 2 2 '
run -n 10 "${dev[@]}"
ok 'more ranks than devices' is "$(devices)" '0 1 2 3 4 5 6 7 0 1 '
ASCEND_RT_VISIBLE_DEVICES=2,5 run sh -c 'echo "dev $NPUEMU_DEVICE/$DEVICE_ID/$ASCEND_RT_VISIBLE_DEVICES"'
ok 'only visible devices, with their own numbers' is "$(devices)" '2/0/2,5 5/1/2,5 '
ASCEND_RT_VISIBLE_DEVICES=2,5 run -d 3 echo
ok 'a device that is not visible: exit code 2' rc_is 2
ok 'a device that is not visible: why' err_has 'device 3 is not in ASCEND_RT_VISIBLE_DEVICES'
run -d 3,5 --visible job sh -c 'echo "dev $NPUEMU_DEVICE/$DEVICE_ID/$ASCEND_RT_VISIBLE_DEVICES"'
ok '--visible job' is "$(devices)" '3/0/3,5 5/1/3,5 '

two() { NPUEMU_BOARD=$NPUEMU_BOARD-2 NPUEMU_MACHINE=950-2x8 run "$@"; }
two sh -c 'echo "dev $NPUEMU_DEVICE/$NPUEMU_SERVER/$LOCAL_RANK/$LOCAL_WORLD_SIZE"'
ok 'two servers: 16 ranks' lines 16
ok 'two servers: one host' out_has '^\[9\] dev 9/1/9/16$'
two --servers 1 "${dev[@]}"
ok '--servers 1' is "$(devices)" '8 9 10 11 12 13 14 15 '
two -n 2 --servers server1 "${dev[@]}"
ok '--servers by name' is "$(devices)" '8 9 '
two -n 9 --servers 0-1 "${dev[@]}"
ok '--servers 0-1' is "$(devices)" '0 1 2 3 4 5 6 7 8 '
two --servers 1 --devices 9,3 echo
ok '--servers leaves a device out: exit code 2' rc_is 2
ok '--servers leaves a device out: which' err_has 'device 3 is in server 0'
two --servers 2 echo
ok 'no such server' err_has 'no server 2: machine 950-2x8 has server 0 to 1'
two -d 1,8,9,15 --visible server \
	sh -c 'echo "dev $NPUEMU_DEVICE/$DEVICE_ID/$LOCAL_RANK/$LOCAL_WORLD_SIZE/$ASCEND_RT_VISIBLE_DEVICES"'
ok '--visible server' is "$(devices)" "1/1/0/1/0,1,2,3,4,5,6,7 8/0/0/3/8,9,10,11,12,13,14,15 \
9/1/1/3/8,9,10,11,12,13,14,15 15/7/2/3/8,9,10,11,12,13,14,15 "

# --- rank tables -----------------------------------------------------------
table() { two --no-prefix "$@" sh -c 'if [ $RANK = 0 ]; then cat "$RANK_TABLE_FILE"; fi'; cp "$tmp/out" "$tmp/table"; }
table -d 0,9,1
json "$tmp/table" 'rank table 1.0' '
d["status"] == "completed" and d["version"] == "1.0" and d["server_count"] == "2"
and [[(v["rank_id"], v["device_id"]) for v in s["device"]] for s in d["server_list"]]
	== [[("0", "0"), ("2", "1")], [("1", "9")]]
and len({s["server_id"] for s in d["server_list"]}) == 2
and len({v["device_ip"] for s in d["server_list"] for v in s["device"]}) == 3
and "super_pod_list" not in d'
table -n 16 --rank-table 1.2
json "$tmp/table" 'rank table 1.2' '
d["version"] == "1.2" and d["super_pod_list"] == [{"super_pod_id": "0",
	"server_list": [{"server_id": s["server_id"]} for s in d["server_list"]]}]
and sorted(int(v["super_device_id"]) for s in d["server_list"] for v in s["device"])
	== list(range(16))'
table -n 3 -d 0,8 --rank-table 2.0
json "$tmp/table" 'rank table 2.0' '
d["version"] == "2.0" and d["rank_count"] == 3
and [(r["rank_id"], r["device_id"], r["local_id"]) for r in d["rank_list"]]
	== [(0, 0, 0), (1, 8, 0), (2, 0, 0)]
and [[(l["net_layer"], l["net_instance_id"], l["net_type"]) for l in r["level_list"]]
	for r in d["rank_list"][:2]]
	== [[(0, "server0", "TOPO_FILE_DESC"), (1, "superpod0", "CLOS")],
	    [(0, "server1", "TOPO_FILE_DESC"), (1, "superpod0", "CLOS")]]
and all(len(bytes.fromhex(a["addr"])) == 16 and a["addr_type"] == "EID"
	for r in d["rank_list"] for l in r["level_list"] for a in l["rank_addr_list"])'
ok 'rank tables are gone in the end' no_folder
RANK_TABLE_FILE=/mine run -n 1 --no-rank-table sh -c 'echo $RANK_TABLE_FILE'
ok '--no-rank-table leaves the variable' out_has '^\[0\] /mine$'

# --- output ----------------------------------------------------------------
run -n 2 sh -c 'echo out; echo err >&2; printf end'
ok 'lines have prefixes, the last its end' sorted $'[0] end\n[0] out\n[1] end\n[1] out'
ok 'stderr is stderr' is "$(sort "$tmp/err")" $'[0] err\n[1] err'
run -n 4 sh -c 'i=0; while [ $i -lt 300 ]; do printf "a$RANK"; printf "b$RANK"; echo "c$RANK $i"; i=$((i+1)); done'
ok 'lines written in pieces: none lost' lines 1200
ok 'lines written in pieces: all whole' is \
	"$(grep -Evc '^\[([0-9])\] a\1b\1c\1 [0-9]+$' "$tmp/out")" 0
ok 'the order of each rank is kept' is "$(grep '^\[2\]' "$tmp/out" | sed 's/.* //')" "$(seq 0 299)"
run -n 3 sh -c 'head -c 1048575 /dev/zero | tr "\0" "$RANK"; echo; echo after'
ok 'lines of 1 MiB: exit code 0' rc_is 0
ok 'lines of 1 MiB: none cut' is "$(awk '{print substr($0, 1, 4) substr($0, 5, 1), length($0)}' "$tmp/out" | sort | uniq -c | tr -s ' ' | tr '\n' ';')" \
	" 1 [0] 0 1048579; 1 [0] a 9; 1 [1] 1 1048579; 1 [1] a 9; 1 [2] 2 1048579; 1 [2] a 9;"
head -c 300000 /dev/urandom >"$tmp/bytes"
run -n 1 --no-prefix cat "$tmp/bytes"
ok '--no-prefix: every byte' cmp "$tmp/bytes" "$tmp/out"
run -n 1 cat "$tmp/bytes"
sed 's/^\[0\] //' "$tmp/out" | head -c 300000 >"$tmp/plain"
ok 'with prefixes too' cmp "$tmp/bytes" "$tmp/plain"
run -n 2 --output-dir "$tmp/dir" sh -c 'echo out $RANK; cat "$1" >&2' sh "$tmp/bytes"
ok '--output-dir: nothing here' lines 0
ok '--output-dir: the files' is "$(cat "$tmp/dir/rank.0.out" "$tmp/dir/rank.1.out")" $'out 0\nout 1'
ok '--output-dir: every byte' cmp "$tmp/bytes" "$tmp/dir/rank.1.err"
timeout 60 "$launcher" -n 2 sh -c 'echo y; sleep 0.1; yes' 2>"$tmp/err" </dev/null | head -n 2 >"$tmp/out"
rc=${PIPESTATUS[0]}
ok 'output that nobody reads any more ends ranks' rc_is $((128 + 13))
timeout 60 "$launcher" -n 4 sh -c 'seq 100000' 2>"$tmp/err" </dev/null |
	{ sleep 0.5; cat; } >"$tmp/out"
ok 'a slow reader loses nothing' lines 400000
run -n 1 sh -c '(sleep 0.2; echo late) & exec >&- 2>&-'
ok 'what a rank leaves behind ends with the job' rc_is 0
ok 'and may say nothing' lines 0
if command -v script >/dev/null; then
	SHELL=/bin/sh script -qec "NO_COLOR= '$launcher' -n 1 sh -c 'read x; echo got \$x'" /dev/null \
		<<<hello >"$tmp/out" 2>"$tmp/err"
	rc=$?
	ok 'on a terminal: exit code 0' rc_is 0
	ok 'on a terminal: coloured, and typed lines reach rank 0' \
		out_has $'^\033\\[3[0-9]m\\[0\\]\033\\[0m got hello'
fi

# --- input -----------------------------------------------------------------
timeout 60 "$launcher" -n 3 sh -c 'while read -r x; do echo "$x"; done; echo end' \
	<<<$'one\ntwo' >"$tmp/out" 2>"$tmp/err"
rc=$?
ok 'stdin goes to rank 0' sorted $'[0] end\n[0] one\n[0] two\n[1] end\n[2] end'
timeout 60 "$launcher" -n 2 --no-prefix cat <"$tmp/bytes" >"$tmp/out" 2>"$tmp/err"
ok 'stdin: every byte' cmp "$tmp/bytes" "$tmp/out"
timeout 60 "$launcher" -n 1 echo ran <&- >"$tmp/out" 2>"$tmp/err"
ok 'without a stdin' out_has '^\[0\] ran$'

# --- ends ------------------------------------------------------------------
run -n 4 sh -c 'if [ $RANK = 2 ]; then exit 7; fi; exec sleep '$mark
ok 'a rank that fails: its exit code' rc_is 7
ok 'a rank that fails: who, and the others' err_has \
	'^npuemu-run: rank 2 \(pid [0-9]+, device 2\) exited with code 7 after [0-9.]+ s; the other 3 were stopped$'
ok 'a rank that fails: the others are gone' none_left
run -n 8 sh -c 'if [ $RANK = 3 ]; then sleep 0.2; kill -SEGV $$; fi; exec sleep '$mark
ok 'a rank killed: 128 + the signal' rc_is 139
ok 'a rank killed: who, how' err_has \
	'rank 3 \(pid [0-9]+, device 3\) was killed by signal 11 \(Segmentation fault.*\) after [0-9.]+ s; the other 7 were stopped$'
ok 'a rank killed: one line' is "$(wc -l <"$tmp/err")" 1
run -n 2 sh -c 'if [ $RANK = 0 ]; then exit 1; fi; exec sleep '$mark
ok 'one other' err_has 'the other one was stopped$'
run -n 3 sh -c 'if [ $RANK = 0 ]; then exit 0; fi; sleep 1.5; if [ $RANK = 1 ]; then exit 1; fi; exec sleep '$mark
ok 'some had ended' err_has 'rank 1 .* exited with code 1 .*; 1 of the other 2 were stopped, 1 had ended$'
run -n 1 false
ok 'a rank alone' err_has 'exited with code 1 after [0-9.]+ s$'
mkdir "$tmp/up"
run -n 3 --grace 0.3 sh -c 'trap "" TERM; : >"$1/$RANK"
	if [ $RANK = 0 ]; then while [ ! -e "$1/1" -o ! -e "$1/2" ]; do sleep 0.05; done; exit 5; fi
	while :; do sleep 0.1; done' sh "$tmp/up"
ok 'ranks that do not end when asked: exit code' rc_is 5
ok 'ranks that do not end when asked: killed' err_has '\(2 had to be killed after 0\.3 s\)$'
run -n 3 sh -c 'if [ $RANK = 0 ]; then while [ ! -e "$1/1" -o ! -e "$1/2" ]; do sleep 0.05; done; exit 5; fi
	trap "echo bye; exit 0" TERM; : >"$1/$RANK"; while :; do sleep 0.05; done' sh "$tmp"
ok 'ranks can say goodbye' is "$(grep -c bye "$tmp/out")" 2
run -n 3 --keep-going sh -c 'if [ $RANK != 1 ]; then exit $((RANK + 4)); fi; sleep 0.3; echo done'
ok '--keep-going: the others end by themselves' out_has '^\[1\] done$'
ok '--keep-going: the code of the first' test $rc = 4 -o $rc = 6
ok '--keep-going: all are told of' is "$(grep -c 'exited with code [46]' "$tmp/err")" 2
run -n 2 "$tmp/none"
ok 'no such file' rc_is 127
ok 'no such file: said once' is "$(wc -l <"$tmp/err")" 1
# a folder of the path that this user may not look into would be the error that counts
path=$PATH PATH=/usr/bin:/bin
run -n 2 npuemu-no-such-program
PATH=$path
ok 'no such program' rc_is 127
ok 'no such program: what to do' err_has 'PATH.*\./npuemu-no-such-program'
run -n 2 "$tmp"
ok 'a folder is no program' rc_is 126
run -n 2 --timeout 2 sh -c 'if [ $RANK = 1 ]; then exec sleep '$mark'; fi'
ok 'time is up: exit code 124' rc_is 124
ok 'time is up: who' err_has '^npuemu-run: the job did not end within 2 s: rank 1 was still running and was stopped$'
run -n 6 --timeout 3 --grace 0.2 sh -c "if [ \$RANK = 3 ]; then exit 0; fi; trap '' TERM; while :; do sleep 0.1; done"
ok 'time is up: ranks in words' err_has 'ranks 0-2, 4-5 were still running and were stopped \(5 had to be killed'
ok 'time is up: within the grace' rc_is 124
run -n 2 --timeout 30 true
ok 'time is not up' rc_is 0
run -n 2 sh -c "sleep ${mark}1 & setsid sleep ${mark}2 & exit 0"
ok 'what ranks leave behind: exit code 0' rc_is 0
ok 'what ranks leave behind is gone' is "$(left)" ''

# --- the report ------------------------------------------------------------
run -n 3 --json sh -c 'echo $RANK; if [ $RANK = 1 ]; then exit 3; fi; exec sleep '$mark
ok '--json: the last line, after all output' out_has '^\{.*\}$'
tail -n 1 "$tmp/out" >"$tmp/report"
json "$tmp/report" '--json: a failure' '
d["end"] == "failed" and d["exit_code"] == 3 and d["first_failed"] == 1 and d["size"] == 3
and [r["rank"] for r in d["ranks"]] == [0, 1, 2] and [r["device"] for r in d["ranks"]] == [0, 1, 2]
and d["ranks"][1]["exit_code"] == 3 and not d["ranks"][1]["stopped"]
and d["ranks"][0]["signal"] == 15 and d["ranks"][0]["stopped"] and not d["ranks"][0]["killed"]
and all(r["pid"] > 1 and 0 < r["seconds"] <= d["seconds"] and r["max_rss_kib"] > 100
	for r in d["ranks"])'
run -n 2 --json true
json "$tmp/out" '--json: nothing failed' 'd["end"] == "done" and d["exit_code"] == 0
and d["first_failed"] is None and all(r["exit_code"] == 0 for r in d["ranks"])'
run -n 2 --json --timeout 0.2 sleep $mark
json "$tmp/out" '--json: time was up' 'd["end"] == "timeout" and d["exit_code"] == 124'
run -n 2 --json "$tmp/none"
json "$tmp/out" '--json: no such program' 'd["end"] == "error" and d["exit_code"] == 127
and not any(r["started"] for r in d["ranks"])'

# --- signals ---------------------------------------------------------------
for sig in INT TERM HUP QUIT USR1 USR2; do
	begin -n 3 sh -c 'trap "echo got '$sig'; exit 0" '$sig'; echo up; while :; do sleep 0.05; done'
	until_out 3 up
	kill -$sig $pid
	end
	ok "$sig reaches all ranks" is "$(grep -c "got $sig" "$tmp/out")" 3
	ok "$sig that ranks take well: exit code 0" rc_is 0
	ok "$sig that ranks take well: nothing to say" silent
done
begin -n 3 sh -c "echo up; sleep ${mark}1 & sleep ${mark}2"
until_out 3 up
kill -TERM $pid
end
ok 'TERM that ranks die of: 143' rc_is 143
ok 'TERM that ranks die of: said so' err_has '^npuemu-run: signal 15 \(Terminated\) was passed on: it ended 3 of 3 ranks$'
ok 'TERM reaches what ranks started' is "$(left)" ''
begin -n 2 sh -c 'echo up; while :; do sleep 0.05; done'
until_out 2 up
kill -USR1 $pid
end
ok 'USR1 that ranks die of' rc_is $((128 + 10))
begin -n 2 --grace 0.2 sh -c 'trap "echo got" TERM; echo up; while :; do sleep 0.05; done'
until_out 2 up
kill -TERM $pid
until_out 2 got
kill -TERM $pid
end
ok 'TERM twice: ranks that go on are killed' rc_is 143
ok 'TERM twice: said so' err_has 'ended 0 of 2 ranks; 2 had to be killed'
timeout 10 nohup "$launcher" -n 1 sh -c 'kill -HUP $PPID; sleep 0.2; echo alive' \
	</dev/null >"$tmp/out" 2>"$tmp/err"
ok 'nohup works' out_has '^\[0\] alive$'

# --- a launcher that is killed ---------------------------------------------
begin -n 4 sh -c "sleep ${mark}1 & setsid sleep ${mark}2 & echo up; exec sleep ${mark}3"
until_out 4 up
for _ in {1..50}; do
	(($(left | wc -l) == 12)) && break
	sleep 0.1
done
ok 'there are twelve to be found' is "$(left | wc -l)" 12
{ kill -KILL $pid; end; } 2>/dev/null	# bash would tell
ok 'a launcher killed: all of the job is gone' none_left
for _ in {1..50}; do
	no_folder && break
	sleep 0.1
done
ok 'a launcher killed: the rank table too' no_folder
begin -n 2 sh -c "echo \$\$ up; exec sleep $mark"
until_out 2 up
kill -STOP "$(sed -n 's/^\[1\] \(.*\) up/\1/p' "$tmp/out")"
kill -KILL "$(sed -n 's/^\[0\] \(.*\) up/\1/p' "$tmp/out")"
end
ok 'a rank killed from outside' rc_is 137
ok 'a rank that is suspended is stopped too' err_has 'rank 0 .*was killed by signal 9 \(Killed\).*the other one was stopped$'
ok 'nothing of it is left' none_left

# --- many ------------------------------------------------------------------
run -n 128 sh -c 'echo "$RANK $NPUEMU_DEVICE"; echo two; echo three'
ok '128 ranks: exit code 0' rc_is 0
ok '128 ranks: every line' lines 384
ok '128 ranks: each its rank and device' is "$(sed -n 's/^\[\(.*\)\] \([0-9].*\)/\1 \2/p' "$tmp/out" | sort -n)" \
	"$(for ((i = 0; i < 128; i++)); do echo "$i $i $((i % 8))"; done)"
(
	ulimit -Sn 64
	run -n 128 sh -c 'ulimit -Sn'
)
ok '128 ranks with few open files' is "$(grep -c ' 64$' "$tmp/out")" 128
(
	ulimit -n 64
	run -n 128 true
	exit $rc
)
rc=$?
ok '128 ranks with too few' rc_is 3
ok '128 ranks with too few: what to do' err_has 'ulimit -Hn'
run -n 128 sh -c 'if [ $RANK = 100 ]; then exit 9; fi; exec sleep '$mark
ok '128 ranks, one fails' rc_is 9
ok '128 ranks, one fails: who' err_has 'rank 100 .*; the other 127 were stopped$'
ok 'none is left' is "$(left)" ''
ok 'no rank table is left' no_folder

echo "$passed passed, $failed failed"
((failed == 0))
