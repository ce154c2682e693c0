#!/bin/bash
# SPDX-License-Identifier: MIT
# make install as a user of it sees it: set_env.sh in several shells, programs in C and
# C++ that are compiled, linked and started by what it says, loading by name, CMake's
# rules, a moved prefix, DESTDIR; and the prefix in the build tree.
#
# BUILD is the build folder (default build).  Exit code 0 when all passed, 77 where
# there is nothing to install from (a copy of the tests, a build with sanitizers).
set -u
SRC=$(cd "${SRC:-$(dirname "$0")/../..}" && pwd)
BUILD=${BUILD:-$SRC/build}
CC=${CC:-gcc}
CXX=${CXX:-g++}
if [[ ! -e $SRC/Makefile || ! -e $BUILD/set_env.sh || ! -e $BUILD/bin/npuemu-vm ]]; then
	echo 'test_prefix: skipped, no tree with a plain build here'
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
# What the caller uses must not help.
unset ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME ASCEND_INSTALL_PATH ASCENDC_CMAKE_DIR
unset LD_LIBRARY_PATH CMAKE_PREFIX_PATH NPUEMU_DATA CDPATH

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
	tail -n 30 "$tmp/out" | sed 's/^/    /'
	return 1
}

install_to()	# PREFIX VARIABLE...
{
	local prefix=$1
	shift
	# As it was spelled for the build, and only what that has made.
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -C "$SRC" -s NO_BUILD=1 SAN= \
		O="${BUILD#"$SRC"/}" "PREFIX=$prefix" "$@" install
}

# --- programs -----------------------------------------------------------------------

cat >"$tmp/prog.c" <<'END'
#include <stdio.h>
#include <acl/acl.h>

int main(void)
{
	const char *s;

	(void)aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
	s = aclGetRecentErrMsg();
	printf("no error yet%s\n", s && *s ? ", says " : "");
	return s && *s;
}
END
cat >"$tmp/prog.cc" <<'END'
#include <iostream>
#include <string>
#include <acl/acl.h>
#include <acl/acl_prof.h>
#include <acl/acl_rt_api.h>

/* Never called: the templates have to compile and to find their functions. */
static aclError use(int n)
{
	float *a = nullptr, *b = nullptr;
	const float *from = nullptr;
	float *many[1] = { nullptr };
	size_t sizes[1] = { 4 }, index[1] = { 0 }, bad = 0;
	aclrtMemcpyBatchAttr attr = aclrtMemcpyBatchAttr();
	aclrtStream s = nullptr;
	aclrtEvent e = nullptr;
	aclError r = aclrtMalloc(&a, 4) + aclrtMalloc(&a, 4, ACL_MEM_MALLOC_HUGE_ONLY);

	r += aclrtMallocHost(&b, 4) + aclrtMemcpy(a, 4, from, 4, ACL_MEMCPY_HOST_TO_DEVICE);
	r += aclrtMemcpyAsync(a, 4, b, 4, ACL_MEMCPY_DEVICE_TO_HOST, s);
	r += aclrtMemcpy2d(a, 4, b, 4, 4, 1, ACL_MEMCPY_DEVICE_TO_HOST);
	r += aclrtMemcpyBatch(many, sizes, many, sizes, 1, attr);
	r += aclrtMemcpyBatch(many, sizes, many, sizes, 1, &attr, index, 1, &bad);
	r += aclrtMemcpyBatchAsync(many, sizes, many, sizes, 1, attr, s);
	r += aclrtMemcpyBatchAsync(many, sizes, many, sizes, 1, attr, &bad, s);
	r += aclrtMemcpyBatchAsync(many, sizes, many, sizes, 1, &attr, index, 1, s);
	r += aclrtSynchronizeStream(s, n) + aclrtSynchronizeDevice(n) + aclrtCreateStream(&s, 0, 0);
	r += aclrtCreateEvent(&e, ACL_EVENT_SYNC) + aclrtStreamWaitEvent(s, e, n);
	r += aclrtHostRegister(a, 4, ACL_HOST_REGISTER_MAPPED, &b) + aclrtHostUnregister(a);
	return r;
}

int main(int argc, char **)
{
	const char *p = argc > 99 && use(argc) ? nullptr : aclGetRecentErrMsg();

	std::cout << std::string(p ? p : "no error yet") << std::endl;
	return p && *p;
}
END
# HCCL, in what C and C++ have in common.
cat >"$tmp/hccl.c" <<'END'
#include <hccl/hccl.h>
#include <hccl/hccl_rank_graph.h>
#include <hcomm_primitives.h>
#include <hcomm_res.h>
#include <securec.h>
#include <stdio.h>

int main(void)
{
	char text[64], name[COMM_NAME_MAX_LENGTH];
	HcclCommConfig config;
	HcclComm comm = NULL;

	HcclCommConfigInit(&config);
	if (strcpy_s(config.hcclCommName, sizeof(config.hcclCommName), "a name") != EOK ||
	    sprintf_s(text, sizeof(text), "%s", HcclGetErrorString(HCCL_SUCCESS)) <= 0)
		return 1;
	/* a communicator that is none, and a thread: an error each, whatever is there */
	if (HcclGetCommName(comm, name) == HCCL_SUCCESS || !HcommFenceOnThread(0))
		return 1;
	return puts(text) < 0 || HcclGetCommConfigCapability() != HCCL_COMM_CONFIG_RESERVED;
}
END
cat >"$tmp/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *first = NULL;

	for (int i = 1; i < argc; i++) {
		void *h = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);

		if (!h || !dlsym(h, "aclInit")) {
			fprintf(stderr, "%s: %s\n", argv[i], dlerror());
			return 1;
		}
		if (first && h != first) {
			fprintf(stderr, "%s: another copy of the library\n", argv[i]);
			return 1;
		}
		first = h;
	}
	return 0;
}
END
libraries='libascendcl.so libacl_rt.so libacl_rt_impl.so libmsprofiler.so libruntime.so
libascend_hal.so libdcmi.so libhccl.so libhcomm.so libc_sec.so'

# --- checks -------------------------------------------------------------------------

# in_env FILE COMMAND: in a shell that has read FILE
in_env()
{
	(
		cd / || exit
		# shellcheck disable=SC1090
		. "$1" && eval "$2"
	)
}

shells()	# HOME: every shell, from anywhere, once and again
{
	local home=$1 sh once twice want
	want="$home $home $home/lib64: $home/bin:$PATH"
	# shellcheck disable=SC2016 # for the shell below
	local show='echo "$ASCEND_HOME_PATH $ASCEND_TOOLKIT_HOME $LD_LIBRARY_PATH: $PATH"'
	for sh in bash dash zsh 'busybox sh'; do
		command -v "${sh%% *}" >/dev/null || continue
		once=$(cd / && $sh -euc ". '$home/set_env.sh'; $show")
		ok "$sh: set_env.sh" test "$once" = "$want" || echo "    $once"
		twice=$(cd / && $sh -euc ". '$home/set_env.sh'; . '$home/set_env.sh'; $show")
		ok "$sh: set_env.sh twice" test "$twice" = "$want" || echo "    $twice"
		once=$(cd / && LD_LIBRARY_PATH="/x y:$home/lib64:/z" $sh -euc \
			". '$home/set_env.sh'; echo \"\$LD_LIBRARY_PATH\"")
		ok "$sh: set_env.sh keeps others' folders" test "$once" = "$home/lib64:/x y:/z" ||
			echo "    $once"
		ok "$sh: nothing is left over" $sh -euc \
			". '$home/set_env.sh'; ! set | grep ^_npuemu && ! command -v _npuemu_front"
	done
}

programs()	# HOME
{
	local env=$1/set_env.sh lib lang std
	# shellcheck disable=SC2016 # for in_env
	local flags='-Wall -Werror -I"$ASCEND_HOME_PATH/include" -L"$ASCEND_HOME_PATH/lib64"'
	for lib in ascendcl acl_rt; do
		ok "C, -l$lib" in_env "$env" "$CC -std=c11 $flags -o $tmp/c $tmp/prog.c -l$lib && $tmp/c"
	done
	for std in c++11 c++14 c++17 'c++17 -D_GLIBCXX_USE_CXX11_ABI=0'; do
		ok "C++, $std" in_env "$env" \
			"$CXX -std=$std -Wextra $flags -Wl,-z,now -o $tmp/cc $tmp/prog.cc -lascendcl && $tmp/cc"
	done
	for lib in hccl 'hccl -lhcomm -lc_sec -lascendcl'; do
		ok "C, -l$lib" in_env "$env" \
			"$CC -std=c11 $flags -Wl,-z,now -o $tmp/h $tmp/hccl.c -l$lib && $tmp/h"
	done
	ok 'C++ with HCCL' in_env "$env" \
		"$CXX -x c++ -std=c++11 $flags -Wl,-z,now -o $tmp/h $tmp/hccl.c -lhccl && $tmp/h"
	# shellcheck disable=SC2016 # for in_env
	flags='-Wall -Werror -I"$ASCEND_HOME_PATH/$(uname -m)-linux/include"'
	# shellcheck disable=SC2016
	ok 'by way of the folder of the architecture' in_env "$env" \
		"$CC $flags -o $tmp/c $tmp/prog.c"' "$ASCEND_HOME_PATH/$(uname -m)-linux/lib64/libascendcl.so"'" && $tmp/c"
	ok 'loading by name, all of them one library' in_env "$env" \
		"$CC -o $tmp/load $tmp/load.c -ldl && $tmp/load ${libraries//$'\n'/ }"
	# shellcheck disable=SC2016
	ok 'the tools' in_env "$env" '[ "$(command -v npuemu-smi)" = "$ASCEND_HOME_PATH/bin/npuemu-smi" ] &&
		npuemu-smi --help >/dev/null'
}

# A project like those that include the rules whether they have kernels or not.
cmake_rules()	# HOME
{
	local dir=$tmp/project
	mkdir -p "$dir"
	cat >"$dir/CMakeLists.txt" <<-'END'
	cmake_minimum_required(VERSION 3.16)
	project(sample C)
	set(ASCENDC_CMAKE_DIR $ENV{ASCENDC_CMAKE_DIR})
	set(SOC_VERSION $ENV{SOC_VERSION})
	include(${ASCENDC_CMAKE_DIR}/ascendc.cmake)
	ascendc_library(kernels_npu SHARED kernel.cpp)
	ascendc_compile_options(kernels_npu PRIVATE -O2)
	ascendc_compile_definitions(kernels_npu PRIVATE -DASCENDC_DUMP=0)
	ascendc_include_directories(kernels_npu PRIVATE include)
	ascendc_fatbin_library(kernels_bin kernel.cpp)
	include_directories(${ASCEND_CANN_PACKAGE_PATH}/include)
	link_directories(${ASCEND_CANN_PACKAGE_PATH}/lib64)
	add_executable(main prog.c)
	target_link_libraries(main PRIVATE kernels_npu ascendcl)
	install(TARGETS kernels_npu main RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
	END
	cp "$tmp/prog.c" "$dir/"
	if ! command -v cmake >/dev/null; then
		echo 'note: test_prefix: no cmake here, its rules were not tried'
		return
	fi
	ok 'a project that includes ascendc.cmake' in_env "$1/set_env.sh" \
		"cmake -S $dir -B $dir/build -DCMAKE_INSTALL_PREFIX=$dir/out &&
		cmake --build $dir/build && cmake --install $dir/build && $dir/build/main"
	ok 'it is told that there are no kernels' in_env "$1/set_env.sh" \
		"cmake -S $dir -B $dir/build 2>&1 | grep 'npuemu: kernels_npu: '"
	# shellcheck disable=SC2016 # for in_env
	ok 'the rules are where others look' in_env "$1/set_env.sh" \
		'for d in compiler tools; do
			[ -e "$ASCEND_HOME_PATH/$d/tikcpp/ascendc_kernel_cmake/ascendc.cmake" ] || exit
		done'
}

# --- the prefixes -------------------------------------------------------------------

home="$tmp/a home"
if ok 'make install' install_to "$home"; then
	shells "$home"
	mv "$home" "$tmp/home"
	ok 'bash: a prefix that was moved' in_env "$tmp/home/set_env.sh" \
		"[ \"\$ASCEND_HOME_PATH\" = '$tmp/home' ]"
	ok 'dash: is told that it was moved' \
		dash -c ". '$tmp/home/set_env.sh' 2>&1 | grep 'was the prefix moved'"
	ok 'bin/setenv.bash' in_env "$tmp/home/bin/setenv.bash" \
		"[ \"\$ASCEND_HOME_PATH\" = '$tmp/home' ]"
	programs "$tmp/home"
	cmake_rules "$tmp/home"
fi

if ok 'make install with DESTDIR' install_to /usr "DESTDIR=$tmp/stage"; then
	ok 'a toolkit beside the folders of /usr' test -e "$tmp/stage/usr/lib/npuemu/lib64/libascendcl.so"
	ok 'no path of the stage in it' sh -c \
		"! grep -rIl '$tmp' '$tmp/stage' && ! find '$tmp/stage' -lname '/*' | grep ."
	for h in acl/acl.h hccl/hccl.h hcomm_res.h securec.h; do
		ok "$h by way of the toolkit" test -e "$tmp/stage/usr/lib/npuemu/include/$h"
	done
fi

ok 'the build tree: as a home' in_env "$BUILD/set_env.sh" \
	"[ \"\$ASCEND_HOME_PATH\" = '$BUILD/prefix' ]"
programs "$BUILD/prefix"

echo "test_prefix: $passed passed, $failed failed"
((failed == 0 && passed > 0))
