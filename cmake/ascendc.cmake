# SPDX-License-Identifier: MIT
# Takes the place of the Ascend C build rules, for projects that include them.
#
# npuemu runs no Ascend C kernels, so none is compiled.  Many projects include this
# file and build no kernel, or only link one into one of several programs: those
# configure, and what needs no kernel builds and runs.  A kernel library becomes a
# target without code; a program that calls a kernel in it does not link, and the
# message here says why.
#
# Set NPUEMU_KERNELS_REQUIRED to make asking for a kernel an error.

if(NPUEMU_ASCENDC_CMAKE_INCLUDED)
	return()
endif()
set(NPUEMU_ASCENDC_CMAKE_INCLUDED TRUE)

# .../x86_64-linux/tikcpp/ascendc_kernel_cmake, or a link to it: the prefix is above.
if(NOT DEFINED ASCEND_CANN_PACKAGE_PATH)
	if(DEFINED ENV{ASCEND_HOME_PATH})
		set(ASCEND_CANN_PACKAGE_PATH "$ENV{ASCEND_HOME_PATH}")
	else()
		get_filename_component(ASCEND_CANN_PACKAGE_PATH
			"${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
	endif()
endif()

function(npuemu_no_kernel target what)
	set(text "npuemu: ${target}: ${what} of Ascend C sources: kernels cannot be compiled here, a program that calls one of them will not link. See Documentation/compatibility.md of npuemu.")
	if(NPUEMU_KERNELS_REQUIRED)
		message(FATAL_ERROR "${text}")
	endif()
	message(WARNING "${text}")
endfunction()

# ascendc_library(<target> [STATIC|SHARED|OBJECT] <source>...)
function(ascendc_library target)
	npuemu_no_kernel(${target} "library")
	add_library(${target} INTERFACE)
	# The interfaces that would be generated for callers go into such a folder.
	set(folder "${CMAKE_BINARY_DIR}/include/${target}")
	file(MAKE_DIRECTORY "${folder}")
	target_include_directories(${target} INTERFACE "${folder}")
	# A kernel library brings the runtime along, and some programs rely on that.
	target_link_libraries(${target} INTERFACE
		"${ASCEND_CANN_PACKAGE_PATH}/lib64/libascendcl.so")
endfunction()

# ascendc_fatbin_library(<target> <source>...): a file to load at run time
function(ascendc_fatbin_library target)
	npuemu_no_kernel(${target} "binary")
	add_custom_target(${target} ALL)
endfunction()

# What there is to say about a kernel's compilation is for nobody: only the target is
# looked at.
function(npuemu_kernel_property rule target)
	if(NOT TARGET ${target})
		message(FATAL_ERROR "${rule}: ${target} is no target: ascendc_library or ascendc_fatbin_library comes first")
	endif()
endfunction()

# ascendc_compile_definitions(<target> [PRIVATE] <definition>...)
function(ascendc_compile_definitions target)
	npuemu_kernel_property(ascendc_compile_definitions ${target})
endfunction()

# ascendc_compile_options(<target> [PRIVATE] <option>...)
function(ascendc_compile_options target)
	npuemu_kernel_property(ascendc_compile_options ${target})
endfunction()

# ascendc_include_directories(<target> [PRIVATE] <folder>...)
function(ascendc_include_directories target)
	npuemu_kernel_property(ascendc_include_directories ${target})
endfunction()

# ascendc_link_libraries(<target> [PRIVATE] <library>...)
function(ascendc_link_libraries target)
	npuemu_kernel_property(ascendc_link_libraries ${target})
endfunction()
