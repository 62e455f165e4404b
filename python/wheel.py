#!/usr/bin/env python3
"""wheel.py STAGE VERSION OUTPUT_FOLDER: a wheel of this package with what `make install` put below
STAGE (program, library, data), and every shared library that these need and that is not part of
the C library, found by ldd and put where their DT_RPATH looks ($ORIGIN/../libs). The tag is the
oldest glibc that all of it runs on. Standard library alone; the same input gives the same bytes.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Of the C library, and the vDSO: they come with the system.
SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so")
WANTED = ("bin/hbmsim", "lib/libhbmsim.so.1", "share/hbmsim/", "share/doc/hbmsim/COPYING")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries(path):
    """Names and places of the shared libraries of a file, all the way down."""
    found = {}
    for line in output_of("ldd", str(path)).splitlines():
        match = re.match(r"\s*(\S+) => (\S+) \(", line)
        if "not found" in line:
            raise SystemExit(f"wheel: {path}: {line.strip()}")
        if match and not SYSTEM.match(match.group(1)):
            found[match.group(1)] = match.group(2)
    return found


def newest_glibc(paths):
    """The second number of the newest GLIBC_2.x that one of the files asks for."""
    needed = [0]
    for path in paths:
        needed += [int(n) for n in re.findall(r"GLIBC_2\.(\d+)", output_of("objdump", "-T", str(path)))]
    return max(needed)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def gather(stage, root):
    """Copies package, program, library, data and libraries to root; the ELF files among them."""
    package = root / "hbmsim"
    shutil.copytree(HERE / "hbmsim", package, ignore=shutil.ignore_patterns("__pycache__"))
    native = package / "native"
    for path in sorted(p for p in stage.rglob("*") if p.is_file()):
        name = path.relative_to(stage).as_posix()
        if name.startswith(WANTED):
            (native / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, native / name)
    binaries = [native / "bin" / "hbmsim", native / "lib" / "libhbmsim.so.1"]
    needed = {}
    for binary in binaries:
        needed.update(libraries(binary))
    (native / "libs").mkdir()
    for name, place in needed.items():
        shutil.copy(place, native / "libs" / name)
    elf = [*binaries, *sorted((native / "libs").iterdir())]
    for path in elf:
        path.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
    return elf


def write_metadata(info, version, tag, bundled):
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: hbmsim\nVersion: {version}\n"
        "Summary: Will this training step fit in the accelerator's memory?\n"
        "License: GPL-3.0-or-later\nRequires-Python: >=3.8\n"
        "Classifier: Operating System :: POSIX :: Linux\n"
        "Description-Content-Type: text/markdown\n\n"
        "Simulator and planner of the device memory of a training step. `import hbmsim`, or the\n"
        "program `hbmsim`. With it come these libraries, as Debian builds them, under their own\n"
        "licences: " + ", ".join(bundled) + ".\n")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: hbmsim {version}\n"
                                f"Root-Is-Purelib: false\nTag: {tag}\n")
    (info / "entry_points.txt").write_text("[console_scripts]\nhbmsim = hbmsim.__main__:main\n")


def pack(root, path):
    """The files of root in order, RECORD last, without the time of day."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in sorted(p for p in root.rglob("*") if p.is_file()):
            name = file.relative_to(root).as_posix()
            data = file.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            add(wheel, name, data, os.access(file, os.X_OK))
        name = next(p for p in root.iterdir() if p.suffix == ".dist-info").name + "/RECORD"
        add(wheel, name, ("\n".join([*record, f"{name},,"]) + "\n").encode(), False)


def add(wheel, name, data, executable):
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    wheel.writestr(entry, data)


def main():
    stage, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    root = out / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    elf = gather(stage, root)
    tag = f"py3-none-manylinux_2_{newest_glibc(elf)}_{platform.machine()}"
    write_metadata(root / f"hbmsim-{version}.dist-info", version, tag,
                   [p.name for p in elf if p.parent.name == "libs"])
    for old in out.glob("hbmsim-*.whl"):
        old.unlink()
    wheel = out / f"hbmsim-{version}-{tag}.whl"
    pack(root, wheel)
    shutil.rmtree(root)
    print(wheel)


if __name__ == "__main__":
    main()
