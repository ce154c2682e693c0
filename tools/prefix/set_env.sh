# SPDX-License-Identifier: MIT
# Makes this npuemu the one that Ascend programs are built with and run on, in the
# shell that reads it:
#
#	. @HOME@/set_env.sh
#
# For bash, zsh, dash and other POSIX shells.  Reading it again changes nothing.
# A shell that tells a script its own name (bash, zsh) finds a prefix that was moved;
# others take it to be where it was installed.
_npuemu_file=
if [ -n "${BASH_VERSION-}" ]; then
	eval '_npuemu_file=${BASH_SOURCE[0]-}'
elif [ -n "${ZSH_VERSION-}" ]; then
	eval '_npuemu_file=${(%):-%x}'
fi
_npuemu_home='@HOME@'
case $_npuemu_file in
*/*) _npuemu_home=$(CDPATH='' cd -- "${_npuemu_file%/*}" && pwd) ;;
?*) _npuemu_home=$(pwd) ;;
esac

# Put a folder in front of a list of them, and take it away from where else it is.
_npuemu_front()	# VARIABLE FOLDER
{
	eval "_npuemu_list=:\${$1-}:"
	while :; do
		case $_npuemu_list in
		*":$2:"*) _npuemu_list=${_npuemu_list%%":$2:"*}:${_npuemu_list#*":$2:"} ;;
		*) break ;;
		esac
	done
	_npuemu_list=${_npuemu_list#:}
	_npuemu_list=${_npuemu_list%:}
	eval "$1=\$2\${_npuemu_list:+:\$_npuemu_list}"
	export "$1"
}

if [ -e "$_npuemu_home/lib64/libascendcl.so" ]; then
	export ASCEND_HOME_PATH="$_npuemu_home"
	export ASCEND_TOOLKIT_HOME="$_npuemu_home"
	export ASCEND_INSTALL_PATH="$_npuemu_home"
	export ASCEND_AICPU_PATH="$_npuemu_home"
	export ASCEND_DIR="$_npuemu_home"
	export ASCENDC_CMAKE_DIR="$_npuemu_home/@ARCH@-linux/tikcpp/ascendc_kernel_cmake"
	_npuemu_front LD_LIBRARY_PATH "$_npuemu_home/lib64"
	_npuemu_front PATH "$_npuemu_home/bin"
	_npuemu_front CMAKE_PREFIX_PATH "$_npuemu_home"
else
	echo "set_env.sh: $_npuemu_home/lib64/libascendcl.so is not there: was the prefix moved? (bash and zsh find it)" >&2
fi
unset _npuemu_file _npuemu_home _npuemu_list
unset -f _npuemu_front
