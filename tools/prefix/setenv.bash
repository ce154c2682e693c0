# SPDX-License-Identifier: MIT
# The same as ../set_env.sh, for scripts that look for it here.
. "$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)/set_env.sh"
