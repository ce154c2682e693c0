#!/bin/bash
# SPDX-License-Identifier: MIT
# The headers of the APIs against the tables here (README.md): types, constants and
# layouts in every language standard that programs use, each header alone, and the
# symbols of the library.
#
# BUILD is the build folder (default build), CC and CXX the compilers.  Exit code 0
# when all is as it should be, 77 without a C++ compiler, else 1.
set -u
SRC=${SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-$SRC/build}
CC=${CC:-gcc}
CXX=${CXX:-g++}
here=$SRC/tests/abi
warn=(-Wall -Wextra -Werror -pedantic)
if ! command -v "$CXX" >/dev/null; then
	echo "test_abi: skipped, no $CXX: run tools/setup check"
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

ok()	# ok WHAT COMMAND...
{
	local what=$1
	shift
	if "$@" >"$tmp/out" 2>&1; then
		passed=$((passed + 1))
		return 0
	fi
	failed=$((failed + 1))
	echo "FAILED: $what"
	# Of a compiler's pages, the lines that tell.
	{ grep -E 'error:|^[^ ]+\.tsv:' "$tmp/out" || cat "$tmp/out"; } | head -n 30 | sed 's/^/    /'
	return 1
}

# compile LANGUAGE STANDARD FLAG...
compile()
{
	local lang=$1 std=$2
	shift 2
	if [[ $lang == c ]]; then
		"$CC" -x c "-std=$std" "${warn[@]}" "$@"
	else
		"$CXX" -x c++ "-std=$std" "${warn[@]}" "$@"
	fi
}

# --- headers --------------------------------------------------------------------

check_language()	# SET LANGUAGE FOLDER HEADER...
{
	local set=$1 lang=$2 folder=$3 stds std header file
	shift 3
	file=$tmp/$set.$lang
	[[ $lang == c ]] && stds=(c11 c17) || stds=(c++11 c++14 c++17)
	if ! "$here/gen" "$set" "$lang" >"$file"; then
		failed=$((failed + 1))
		return
	fi
	# Once as a program, for the constants; a syntax check tells the rest.
	ok "$set: $lang, ${stds[0]}" compile "$lang" "${stds[0]}" -I "$folder" -o "$tmp/prog" "$file" &&
		ok "$set: $lang: values of constants" "$tmp/prog" &&
		sed "s/^/$set: $lang: /" "$tmp/out"
	for std in "${stds[@]:1}"; do
		ok "$set: $lang, $std" compile "$lang" "$std" -I "$folder" -fsyntax-only "$file"
	done
	if [[ $lang == c++ ]]; then
		ok "$set: c++17, old ABI" compile c++ c++17 -D_GLIBCXX_USE_CXX11_ABI=0 -I "$folder" \
			-fsyntax-only "$file"
	fi
	# A file for each header that has only it, twice: all in one run of the compiler.
	mkdir -p "$tmp/alone"
	rm -f "$tmp"/alone/*
	for header; do
		printf '#include <%s>\n#include <%s>\nextern int nothing;\n' "$header" "$header" \
			>"$tmp/alone/${header//\//_}.in"
	done
	ok "$set: $lang: each header alone" compile "$lang" "${stds[0]}" -I "$folder" \
		-fsyntax-only "$tmp"/alone/*
}

# --- symbols --------------------------------------------------------------------

check_symbols()		# SET LIBRARY REGEX
{
	local set=$1 lib=$BUILD/$2 regex=$3
	if [[ ! -e $lib ]]; then
		failed=$((failed + 1))
		echo "FAILED: $lib is not there: run make first, or set BUILD"
		return
	fi
	"$here/gen" "$set" names >"$tmp/names"
	nm -D --defined-only "$lib" |
		awk -v re="$regex" '{ sub(/@.*/, "", $3) } $3 ~ re { print $3 }' |
		LC_ALL=C sort -u >"$tmp/exported"
	LC_ALL=C comm -23 "$tmp/names" "$tmp/exported" >"$tmp/missing"
	LC_ALL=C comm -13 "$tmp/names" "$tmp/exported" >"$tmp/extra"
	ok "$set: functions that $lib does not export" compare_empty "$tmp/missing"
	ok "$set: $lib exports what the API does not have" compare_empty "$tmp/extra"
	echo "$set: $(wc -l <"$tmp/names") functions, $(wc -l <"$tmp/exported") exported"
}

compare_empty()
{
	cat "$1"
	[[ ! -s $1 ]]
}

# --- the checks themselves --------------------------------------------------------

# A table with one wrong entry of each kind: each has to be an error that names it.
check_checks()		# SET LANGUAGE FOLDER
{
	local set=$1 lang=$2 folder=$3 t want
	mkdir -p "$tmp/wrong"
	for t in functions constants types structs; do
		[[ -e $here/${set}_$t.tsv ]] || continue
		rm -f "$tmp/want"
		awk -F '\t' -v OFS='\t' -v what=$t -v entry="$tmp/want" '
		NR == 1 { print; next }
		!done && what == "functions" { $4 = $4 == "" ? "int" : $4 ", int" ; done = 1 }
		!done && what == "constants" && $3 !~ /^const/ { $4 = "(" $4 ") + 1"; done = 1 }
		!done && what == "types" && $4 > 0 { $4++; done = 1 }
		!done && what == "structs" && $1 !~ /^\(/ && $4 ~ /@8/ && $1 !~ /^Mem/ {
			sub(/@8/, "@9", $4); done = 1
		}
		done == 1 { printf "%s_%s.tsv:%d: %s\n", set, what, NR, $1 >entry; done = 2 }
		{ print }' set="$set" "$here/${set}_$t.tsv" >"$tmp/wrong/${set}_$t.tsv"
		TABLES=$tmp/wrong "$here/gen" "$set" "$lang" >"$tmp/wrong.$lang" &&
			compile "$lang" "$([[ $lang == c ]] && echo c11 || echo c++11)" -I "$folder" \
			-fsyntax-only "$tmp/wrong.$lang" >"$tmp/wrong.out" 2>&1
		want=$(cat "$tmp/want")
		ok "$set: a wrong entry in ${set}_$t.tsv is noticed in $lang ($want)" \
			grep -F "${want:?no entry was changed}" "$tmp/wrong.out"
		rm "$tmp/wrong/${set}_$t.tsv"
	done
}

# --- all sets -----------------------------------------------------------------------

while IFS=$'\t' read -r set langs folder lib regex headers; do
	[[ -z $set || $set == \#* ]] && continue
	for lang in $langs; do
		# shellcheck disable=SC2086 # several
		check_language "$set" "$lang" "$SRC/$folder" $headers
		check_checks "$set" "$lang" "$SRC/$folder"
	done
	check_symbols "$set" "$lib" "$regex"
done <"$here/list"

echo "test_abi: $passed passed, $failed failed"
((failed == 0 && passed > 0))
