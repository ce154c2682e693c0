#!/bin/bash
# SPDX-License-Identifier: MIT
# What README.md has a newcomer type, typed: its programs are taken from it, compiled
# by its own commands and run, and have to print what it says.  The programs in
# examples/ that make builds are run, too.
#
# BUILD is the build folder (default build).  Exit code 0 when all passed, 77 where
# there is no plain build (a copy of the tests, a build with sanitizers).
set -u
SRC=$(cd "${SRC:-$(dirname "$0")/../..}" && pwd)
BUILD=${BUILD:-$SRC/build}
readme=$SRC/README.md
if [[ ! -e $readme || ! -e $BUILD/set_env.sh || ! -e $BUILD/bin/npuemu-vm ]]; then
	echo 'test_readme: skipped, no tree with a plain build here'
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
# What the caller uses must not help.
unset ASCEND_HOME_PATH LD_LIBRARY_PATH NPUEMU_DATA CDPATH
export NPUEMU_HOST=${NPUEMU_HOST:-user}

result()	# result WHAT: what the last command said of it
{
	if [[ $? == 0 ]]; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAILED: $1"
	tail -n 30 "$tmp/out" | sed 's/^/    /'
}

# The code block after the mark "<!-- NAME -->".
block()
{
	awk -v mark="<!-- $1 -->" '
		$0 == mark { on = 1; next }
		on && /^```/ { if (inside) exit; inside = 1; next }
		inside' "$readme"
}

# Its commands, with this build folder; "make" has been typed already.
commands()
{
	block "$1" | sed -e '/^make\( \|$\)/d' -e "s|build/|$BUILD/|g; s|\\\$PWD/$BUILD|$BUILD|g" \
		-e "s|-Iinclude|-I$SRC/include|g; s| examples/| $SRC/examples/|g"
}

# The text in `...` behind "prints", after the mark.
promise()
{
	# shellcheck disable=SC2016 # these are backquotes
	awk -v mark="<!-- $1 -->" '$0 == mark { on = 1 } on' "$readme" |
		sed -n 's/.*[Pp]rints `\([^`]*\)`.*/\1/p' | head -n 1
}

follow()	# follow WHAT MARK: the commands at MARK print what is promised there
{
	local want script
	want=$(promise "$2") script=$(commands "$2")
	if [[ -z $want || -z $script ]]; then
		echo "no commands, or nothing they print, at <!-- $2 -->" >"$tmp/out"
		false
	else
		(cd "$tmp" && bash -euc "$script") >"$tmp/out" 2>&1 && grep -qxF "$want" "$tmp/out"
	fi
	result "$1"
}

block first.c >"$tmp/first.c"
follow 'a first program' first-run
follow 'your own CANN program' hello-run
follow 'an all-reduce' allreduce-run

for f in "$SRC"/examples/*/*.c; do
	name=${f#"$SRC"/examples/}
	run=()
	[[ $name == hccl/* ]] && run=("$BUILD/bin/npuemu-run" -n 3)
	timeout 60 "${run[@]}" "$BUILD/examples/${name%.c}" >"$tmp/out" 2>&1
	result "examples/$name, as make built it"
done

echo "test_readme: $passed passed, $failed failed"
((failed == 0 && passed > 2))
