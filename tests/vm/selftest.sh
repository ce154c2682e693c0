#!/bin/bash
# SPDX-License-Identifier: MIT
# Shows that npuemu-vm keeps what it promises: exit codes, bytes, and that it
# notices panics, warnings and deadlines and leaves no QEMU behind.  Needs no
# npuemu.ko.
#
# Usage: tests/vm/selftest.sh [KERNEL]...     default: 6.12-cloud
#        BUILD=dir (default: build) has bin/npuemu-vm
set -u

here=$(realpath "$(dirname "$0")")
build=$(realpath "${BUILD:-$here/../../build}")
vm=$build/bin/npuemu-vm
limit=${TEST_TIMEOUT:-180}
passed=0
failed=0

[[ -x $vm ]] || {
	echo "selftest.sh: no $vm: run make first, or say BUILD=dir" >&2
	exit 1
}
tmp=$(mktemp -d) || exit 1
export TMPDIR=$tmp
trap 'rm -rf "$tmp"' EXIT

# check NAME TEST-COMMAND...
check()
{
	local name=$1
	shift
	if "$@"; then
		echo "ok - $kernel: $name"
		passed=$((passed + 1))
		return
	fi
	echo "not ok - $kernel: $name"
	echo "# exit code $rc; stderr:"
	sed 's/^/# /' "$tmp/err" | head -n 40
	failed=$((failed + 1))
}

# run [npuemu-vm's arguments]: into rc, out, err, log, json
run()
{
	timeout -k 5 $((limit + 30)) "$vm" --kernel "$kernel" --timeout "$limit" \
		--log "$tmp/log" --json "$tmp/json" "$@" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

has()
{
	grep -q -e "$2" "$tmp/$1"
}

empty()
{
	[[ ! -s $tmp/$1 ]]
}

test_bytes()
{
	head -c 1M /dev/urandom >"$tmp/in"
	run --no-module -- sh -c 'cat; echo to stderr >&2' <"$tmp/in"
	check 'exit code 0' test "$rc" = 0
	check '1 MiB of stdin to stdout, byte for byte' cmp "$tmp/in" "$tmp/out"
	check 'stderr is separate' test "$(cat "$tmp/err")" = 'to stderr'
	check '--json tells' has json '"state": "exit"'
}

test_files()
{
	mkdir -p "$tmp/dir/sub"
	echo deep >"$tmp/dir/sub/file"
	# a program with libraries, arguments that need quoting, our variables
	NPUEMU_SELFTEST="it's \$here" run --no-module --copy "$tmp/dir:/else/where" \
		--copy "$(type -P bash)" -- "$(type -P env)" bash -c \
		'cat /else/where/sub/file; echo "$NPUEMU_SELFTEST"; echo "$1"; exit 3' x 'a "b" $c' \
		</dev/null
	check 'exit code 3' test "$rc" = 3
	check 'files, variables and arguments' test "$(cat "$tmp/out")" = \
		"$(printf '%s\n' deep "it's \$here" 'a "b" $c')"
	check 'nothing on stderr' empty err
}

test_panic()
{
	run --no-module -- sh -c 'echo before; sleep 1; echo c >/proc/sysrq-trigger; sleep 60' </dev/null
	check 'a panic: exit code 125' test "$rc" = 125
	check 'a panic: what was written before it is there' test "$(cat "$tmp/out")" = before
	check 'a panic: the kernel log is shown' has err 'Kernel panic - not syncing'
	check 'a panic: the log is kept' has log 'Kernel panic - not syncing'
}

test_deadline()
{
	local begin=$SECONDS boot
	# twice what booting took the last time, for a busy machine
	boot=$(sed -n 's/.*"boot_seconds": \([0-9]*\).*/\1/p' "$tmp/json")
	boot=$((15 + 2 * ${boot:-15}))
	limit=$boot run --no-module -- sh -c 'echo early; sleep 1000' </dev/null
	check 'the deadline: exit code 124' test "$rc" = 124
	check 'the deadline: is kept' test $((SECONDS - begin)) -lt $((boot + 15))
	check 'the deadline: says where it hangs' has err 'sleep: .*nanosleep'
}

test_warning()
{
	local found kdir=''

	found=$("$build/share/npuemu/vm/kernels" show "$kernel") || return
	eval "$found"
	rm -rf "$tmp/splat"
	cp -r "$here/splat" "$tmp/splat"
	make -C "$kdir" M="$tmp/splat" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$tmp/err" 2>&1
	rc=$?
	check 'a module builds' test -e "$tmp/splat/splat.ko"
	run --module "$tmp/splat/splat.ko" --param how=load -- echo fine </dev/null
	check 'a warning: exit code 125' test "$rc" = 125
	check 'a warning: the output is all there' test "$(cat "$tmp/out")" = fine
	check 'a warning: it is shown' has err 'splat: asked for'
	run --module "$tmp/splat/splat.ko" --param how=unload --no-strict -- sh -c 'exit 4' </dev/null
	check 'a warning, --no-strict: exit code of the command' test "$rc" = 4
	check 'a warning at unload: is in the log' has log 'splat: asked for'
	run --module "$tmp/splat/splat.ko" --param nonsense=1 -- true </dev/null
	check 'no warning: exit code 0' test "$rc" = 0
	run --module "$tmp/splat/Kbuild" -- true </dev/null
	check 'not a module: exit code 126' test "$rc" = 126
}

# A signal, also one that npuemu-vm cannot catch, ends QEMU.
test_signals()
{
	local sig pid qemu i

	for sig in TERM KILL; do
		"$vm" --kernel "$kernel" --no-module --log "$tmp/log" -- \
			sh -c 'echo up; sleep 1000' </dev/null >"$tmp/out" 2>"$tmp/err" &
		pid=$!
		for ((i = 0; i < limit * 10; i++)); do
			has out up && break
			sleep 0.1
		done
		qemu=$(pgrep -P "$(pgrep -P $pid -f npuemu-vm-host)" -f qemu-system)
		rc=$qemu
		check "SIG$sig: QEMU ran" test -n "$qemu"
		kill -$sig $pid
		wait $pid 2>/dev/null
		rc=$?
		sleep 1
		check "SIG$sig: QEMU is gone" test ! -e "/proc/$qemu/exe"
	done
}

test_usage()
{
	run --no-module --
	check 'no command: exit code 2' test "$rc" = 2
	run --no-module --nonsense x -- true
	check 'an unknown option: exit code 2' test "$rc" = 2
	run --no-module -- /no/such/command
	check 'a command that is not there: exit code 126' test "$rc" = 126
	kernel=no-such-kernel run --no-module -- true
	check 'a kernel that is not there: exit code 126' test "$rc" = 126
}

(($#)) || set -- 6.12-cloud
for kernel; do
	test_bytes
	test_files
	test_panic
	test_deadline
	test_warning
	test_signals
done
test_usage
echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
