#!/bin/bash
# SPDX-License-Identifier: MIT
# Bad arguments to every function that the libraries have: tests/abi/badinput.c with the
# table that tests/abi/gen-badinput makes; and whether it notices functions that crash,
# hang, swallow a NULL, fail without a word or with a wrong code, or leak.
#
# BUILD is the build folder (default build), CC the compiler.  Exit code 0 when all passed,
# 77 where there is nothing to build from (a copy of the tests), or under TSan.
set -u
SRC=$(cd "${SRC:-$(dirname "$0")/../..}" && pwd)
BUILD=$(realpath -m "${BUILD:-$SRC/build}")
CC=${CC:-gcc}
here=$SRC/tests/abi
lib=$BUILD/lib/libnpuemu.so
if [[ ! -e $SRC/Makefile ]]; then
	echo 'test_badinput: skipped, no tree here'
	exit 77
fi
if [[ ! -e $lib ]]; then
	echo "test_badinput: $lib is not there: run make first, or set BUILD"
	exit 1
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
flags=(-g -O1 -std=gnu11 -Wall -Wextra -Werror -pthread -I "$SRC/include" -I "$here")
symbols=$(nm -D "$lib")
if [[ $symbols == *__tsan_init* ]]; then
	echo 'test_badinput: skipped: each call has a process, threads are not what this is about'
	exit 77
elif [[ $symbols == *__asan_init* ]]; then
	flags+=("-fsanitize=address,undefined" -fno-sanitize-recover=all)
fi

build()		# PROGRAM FILE...
{
	local prog=$1
	shift
	"$CC" "${flags[@]}" -o "$prog" "$here"/badinput.c "$here"/badrules.c \
		"$here"/badworld.c "$tmp/table.c" "$@" -L "$BUILD/lib" -lnpuemu "-Wl,-rpath,$BUILD/lib"
}

"$here/gen-badinput" >"$tmp/table.c" && build "$tmp/badinput" || exit 1
# What the library logs of all these mistakes is no news,
export NPUEMU_LOG=error:$tmp/log
# and profiling that is begun leaves files where it stands
cd "$tmp" || exit 1
"$tmp/badinput"
rc=$?

# --- the check itself ---------------------------------------------------------------

# Functions of these names that are wrong, each in its way: they come before the library's.
cat >"$tmp/wrong.c" <<'END'
#include <acl/acl.h>
#include <stdlib.h>
#include <unistd.h>

aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId)
{
	*eventId = *(volatile uint32_t *)event;		/* whatever it is */
	return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
	(void)stream;
	if (streamId)
		*streamId = 0;
	return ACL_SUCCESS;
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
	if (!notify || !notifyId)
		for (;;)
			pause();
	return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
	return runMode ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM;
}

aclError aclrtGetDevicesTopo(uint32_t a, uint32_t b, uint64_t *value)
{
	(void)a;
	(void)b;
	return value ? ACL_SUCCESS : 7;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
	void *lost;

	(void)flags;
	aclrtMalloc(&lost, 1 << 21, ACL_MEM_MALLOC_HUGE_FIRST);
	return aclrtStreamGetPriority(stream, NULL);
}
END

notices()	# FUNCTION WORDS
{
	"$tmp/wrong" -t 2 "$1" >"$tmp/out" 2>&1
	if (($? != 1)) || ! grep -q "^FAILED: $1: .*$2" "$tmp/out"; then
		echo "FAILED: a wrong $1 was not noticed as \"$2\":"
		tail -n 20 "$tmp/out"
		rc=1
	fi
}

build "$tmp/wrong" "$tmp/wrong.c" || exit 1
if [[ $symbols != *__asan_init* ]]; then	# there the process ends with a report
	notices aclrtGetEventId 'died of signal 11'
	notices aclrtGetNotifyId 'no end after 2 s'
fi
notices aclrtStreamGetId 'succeeded'
notices aclrtGetRunMode 'left no message'
notices aclrtGetDevicesTopo '7 is not the code'
notices aclrtStreamGetFlags 'bytes are gone'
exit $((rc != 0))
