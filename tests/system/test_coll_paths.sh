#!/bin/sh
# SPDX-License-Identifier: MIT
# Every collective, as threads and as processes, over both data paths, by npuemu-perf,
# which compares every byte of every rank with a plain reference; and that it would say
# so if one were wrong.  Runs on the module, too, where it is a test of the VMs' list.
#
# BUILD is the build folder (default build); in a VM the tool is in the path.
set -u
if [ -x "${BUILD:-build}/bin/npuemu-perf" ]; then
	PATH=$(cd "${BUILD:-build}/bin" && pwd):$PATH
fi
command -v npuemu-perf >/dev/null || { echo 'test_coll_paths: skipped, no npuemu-perf'; exit 77; }
tmp=$(mktemp -d) || exit 1
export NPUEMU_BOARD="coll-paths-$$"
trap 'rm -rf "$tmp"; [ "${NPUEMU_HOST-}" = kernel ] || npuemu-ctl reset >/dev/null 2>&1' EXIT
passed=0 failed=0

result()	# result CODE WANTED WHAT
{
	if [ "$1" = "$2" ]; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAILED: $3: exit code $1, not $2"
	tail -n 15 "$tmp/out" | sed 's/^/    /'
}

# Exit code 0, rows, and each of them compared.
good()		# good WHAT ARGUMENT...
{
	what=$1
	shift
	timeout -k 5 "${patience:-120}" npuemu-perf collectives "$@" -i 2 -w 1 --repeats 1 >"$tmp/out" 2>&1
	code=$?
	rows=$(grep -c ' passed$' "$tmp/out")
	[ "$code" = 0 ] && { [ "$rows" = 0 ] || grep -qE ' (FAILED|failed|unchecked)$' "$tmp/out"; } && code="0, $rows rows passed"
	result "$code" 0 "$what"
}

ranks='2 3'
[ "${NPUEMU_HOST-}" = kernel ] && ranks=2
for path in mapped queue; do
	for how in threads processes; do
		for n in $ranks; do
			export NPUEMU_TRANSPORT=$path
			good "$path, $n $how" all -n "$n" "--$how" -s 8,3000,200k --type fp32,int8,int64
		done
	done
done
# Still by the queue: more than one WQE can, so it takes several.  6 GiB, so not in the sandbox (which has no
# Documentation) nor where a sanitizer looks at each byte.
case ${NPUEMU_CHECK_ALL:+all}-${NPUEMU_HOST:-user}-${BUILD:-build} in
all-user-*san) ;;
all-user-*)
	patience=600
	[ -d Documentation ] && good "$path, over 1 GiB" sendrecv -n 2 -s 1100M --type int8 ;;
esac
unset NPUEMU_TRANSPORT patience
for algo in ring rhd nhr nb mesh-one-shot; do
	good "$algo" allreduce reducescatter allgather -n 2 --algo "$algo" -s 20k --op all
done
timeout -k 5 60 npuemu-perf collectives allreduce -n 2 -s 4k --flip-byte 100 --flip-rank 1 >"$tmp/out" 2>&1
result $? 1 'a byte that is wrong'
timeout -k 5 60 npuemu-perf collectives allreduce -n 200 >"$tmp/out" 2>&1
result $? 2 'more ranks than there can be'

echo "test_coll_paths: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 8 ]
