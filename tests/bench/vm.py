# SPDX-License-Identifier: MIT
"""
The benches of the kernel host: one VM in which tests/bench/vm_guest runs the vm_*
programs and those of Soft-RoCE in turn, and the rows that come of it.
"""
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile

KERNEL = "6.1"      # the generic one: it has rdma_rxe
KMODS = ("crc32_generic", "rdma_rxe", "ib_uverbs", "dummy")
PROGRAMS = ("rate", "copy", "syscalls", "idle", "insmod")
# source: what vm_guest is to run for it
SOURCES = {"vm-insmod": "insmod", "vm-rate": "rate", "vm-rxe8": "rxe", "vm-copy": "copy",
           "vm-rxe1m": "rxe", "vm-syscalls": "syscalls", "vm-syscalls-helping": "syscalls",
           "vm-idle": "idle"}


def rows(Row, mrate, gbytes, same):
    def rxe(source):
        return [("Soft-RoCE, ib_write_bw", [(source, "ns")])]

    return [
        Row("vm_write8_rate", "8 B WRITE rate", "M/s", mrate, ("vm-rate", "rate"),
            [("bare ring, two threads", [("vm-rate", "bare2")])], 0.5, cross=True),
        Row("vm_write8_rate_vs_rxe", "8 B WRITE rate", "M/s", mrate, ("vm-rate", "rate"),
            rxe("vm-rxe8"), 10),
        Row("vm_write_1m", "WRITE 1m", "GB/s", gbytes(1 << 20), ("vm-copy", "write_1m"),
            [("memcpy", [("vm-copy", "memcpy_1m")])], 0.8),
        Row("vm_write_1m_vs_rxe", "WRITE 1m", "GB/s", gbytes(1 << 20),
            ("vm-copy", "write_1m"), rxe("vm-rxe1m"), 2),
        Row("vm_quiet_batches", "batches of 32 WRITEs without a system call, not helping",
            "%", same, ("vm-syscalls", "quiet_pct"), [], 0.99, limit=100),
        Row("vm_quiet_batches_default", "batches of 32 WRITEs without a system call, default",
            "%", same, ("vm-syscalls-helping", "quiet_pct"), [], 0.99, limit=100),
        Row("vm_idle_switches", "idle board, 64 queues: context switches of engines",
            "in 5 s", same, ("vm-idle", "switches"), [], 0, "lower", limit=1),
        Row("vm_idle_wake", "idle board: doorbell store to CQE", "us", lambda ns: ns / 1e3,
            ("vm-idle", "wake_ns"), [], 1, "lower", limit=1e6),
        Row("vm_insmod_time", "insmod, 8 devices", "ms", lambda ns: ns / 1e6,
            ("vm-insmod", "insmod_ns"), [], 1, "lower", limit=100),
        Row("vm_insmod_memory", "memory of the module and 8 devices", "KiB", same,
            ("vm-insmod", "kib"), [], 1, "lower", limit=4096),
    ]


def info(mrate, gbytes, same):
    return [
        ("VM: line transfer, one way", "ns", same, "vm-rate", "line"),
        ("VM: one WQE to its CQE", "us", lambda ns: ns / 1e3, "vm-rate", "one"),
        ("VM: bare ring, two threads, one WQE to its CQE", "us", lambda ns: ns / 1e3,
         "vm-rate", "bare2_one"),
        ("VM: system calls for a WRITE, ring kept full, not helping", "", same,
         "vm-syscalls", "per_write"),
        ("VM: system calls for a WRITE, ring kept full, default", "", same,
         "vm-syscalls-helping", "per_write"),
        ("VM: insmod, MemFree", "KiB", same, "vm-insmod", "free_kib"),
        ("VM: insmod, what /proc/meminfo itemises", "KiB", same, "vm-insmod", "counted_kib"),
    ]


def rxe_files():
    """What an RDMA program needs in the guest; None where something is not installed."""
    files = [shutil.which("ib_write_bw"), shutil.which("rdma")]
    driver = glob.glob("/etc/libibverbs.d/rxe.driver")
    plugin = glob.glob("/usr/lib/*/libibverbs/librxe-rdmav*.so")
    if not all(files) or not driver or not plugin:
        return None
    return files + driver + plugin


class NoVM(Exception):
    """Why there is no VM."""


def module(top, build, kernel_show):
    """npuemu.ko for the kernel of the VM, built if it must be."""
    shown = subprocess.run([kernel_show, "show", KERNEL], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, check=False)
    found = dict(re.findall(r"^(\w+)='?([^'\n]*)'?$", shown.stdout, re.M))
    if shown.returncode or "kdir" not in found:
        raise NoVM(last_line(shown.stderr) or f"there is no kernel {KERNEL}")
    built = subprocess.run([os.path.join(top, "tools/vm/build-module"), top, found["kdir"],
                            os.path.join(build, "modules")], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    ko = os.path.join(build, "modules", found["release"], "npuemu.ko")
    if built.returncode or not os.path.exists(ko):
        raise NoVM("npuemu.ko cannot be built: " + last_line(built.stdout))
    return ko


def last_line(text):
    lines = [x.strip() for x in text.splitlines() if x.strip()]
    return lines[-1] if lines else ""


def command(top, build, quick, runs, sources, out):
    """The command line that boots the VM; it writes its report to out/vm.json."""
    if not shutil.which("qemu-system-x86_64"):
        raise NoVM("qemu-system-x86_64 is not installed (tools/setup vm)")
    tool = os.path.join(build, "bin/npuemu-vm")
    what = {SOURCES[s] for s in sources}
    copies = {f"{build}/bench/vm_{p}": f"/bench/vm_{p}" for p in PROGRAMS}
    for path in [tool] + list(copies):
        if not os.path.exists(path):
            raise NoVM(f"{path} is missing: run make bench")
    copies[module(top, build, os.path.join(top, "tools/vm/kernels"))] = "/bench/npuemu.ko"
    copies[os.path.join(top, "tests/bench/vm_guest")] = "/bench/vm_guest"
    cmd = [tool, "--kernel", KERNEL, "--no-module", "--mem", "2048", "--smp", "2",
           "--timeout", "900", "--json", f"{out}/vm.json", "--log", f"{out}/vm.log"]
    if "rxe" in what:
        copies.update((f, f) for f in rxe_files())
        for kmod in KMODS:
            cmd += ["--kmod", kmod]
    for path, dest in copies.items():
        cmd += ["--copy", f"{path}:{dest}"]
    return cmd + ["--", "env", f"BENCH_REPS={3 if quick else 5}",
                  f"BENCH_SAMPLE_MS={15 if quick else 40}",
                  f"BENCH_IDLE_SECONDS={1 if quick else 5}",
                  "/bench/vm_guest", str(runs)] + sorted(what)


def each_time(values):
    """What is done again and again in one program: each time is a run."""
    return [{k: v[i] for k, v in values.items() if i < len(v)}
            for i in range(max(len(v) for v in values.values()))]


def parse(text):
    """{source: [values of a run]}, {source: why it failed}"""
    data, failed, source, values = {}, {}, None, {}
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["@", "begin"]:
            source, values = words[2], {}
        elif words[:2] == ["@", "error"]:
            failed[source] = line[len("@ error "):] or "failed without a word"
        elif words[:1] == ["@"] and words[1:] == ["end"]:
            if source and values and source not in failed:
                data.setdefault(source, []).extend(
                    each_time(values) if source == "vm-insmod" else
                    [{k: statistics.median(v) for k, v in values.items()}])
            source = None
        elif source and len(words) == 3:
            values.setdefault(words[0], []).append(float(words[2]))
    return data, failed


def children():
    """{pid: pids of its children}"""
    out = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                pid, rest = f.read().split(" (", 1)
        except OSError:
            continue
        out.setdefault(int(rest.rsplit(")", 1)[1].split()[1]), []).append(int(pid))
    return out


def first_in_line(pid):
    """QEMU has a session of its own, which Linux weighs against the others': ahead
    with it, too, where that is allowed.  Its name is the 15 characters comm has.
    """
    family, todo = children(), [pid]
    while todo:
        one = todo.pop()
        todo += family.get(one, [])
        try:
            with open(f"/proc/{one}/comm") as f:
                if f.read().strip() != "qemu-system-x86":
                    continue
            with open(f"/proc/{one}/autogroup", "w") as f:
                f.write("-20")
        except OSError:
            pass


def run(start, top, build, args, sources):
    """Boot and measure: data, failed, machine in words.  @start starts a process."""
    failed = {}
    if not rxe_files():
        failed = {s: "packages perftest, iproute2 and ibverbs-providers are not all installed"
                  for s in sources if SOURCES[s] == "rxe"}
        sources = [s for s in sources if s not in failed]
    with tempfile.TemporaryDirectory(prefix="npuemu-bench-") as out:
        cmd = command(top, build, args.quick, args.runs, sources, out)
        proc = start(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)
        while True:
            try:
                text, err = proc.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                first_in_line(proc.pid)
        try:
            with open(f"{out}/vm.json") as f:
                report = json.load(f)
        except (OSError, ValueError):
            report = {}
    if report.get("state") not in ("exit", "died", "timeout"):
        raise NoVM("no VM: " + (last_line(err) or f"npuemu-vm ended with {proc.returncode}"))
    data, more = parse(text)
    failed.update(more)
    if report["complaint"]:
        failed.update((s, "the kernel of the VM complained: npuemu-vm --kernel "
                       f"{KERNEL} shows it") for s in sources)
    for s in sources:
        if s not in data and s not in failed:
            failed[s] = "not measured: " + (last_line(err) or report["state"])
    return data, failed, (f"Linux {report['release']}, {report['accel'].upper()}, 2 cpus, "
                          f"2 GiB")
