# SPDX-License-Identifier: Apache-2.0
"""What an executable of a build folder is linked with, as the linker tells it, and whose that is. For
build/relink-kit and build/sbom; Debian only."""

import os
import re
import shlex
import subprocess
import sys
import tempfile

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = ("ramseal", "ramseal-collect")
ENDINGS = {"linux": "", "arm64": "", "windows": ".exe"}
HEADINGS = {"linux": "linux", "arm64": "linux", "windows": "windows"}


def output_of(*args, **more):
    return subprocess.run(args, stdout=subprocess.PIPE, text=True, check=True, **more).stdout


def link_command(build, system, program):
    """The words of the command that links the program, to be run in `build`."""
    target = f"agent/{program}{ENDINGS[system]}"
    last = output_of("ninja", "-t", "commands", target, cwd=build).splitlines()[-1]
    return [word for word in shlex.split(last) if word]


def link(build, words, to):
    """Links into `to`; what the linker says of the files that it takes."""
    at = words.index("-o") + 1
    done = subprocess.run([*words[:at], to, *words[at + 1:], "-Wl,--trace"], cwd=build, capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"linking the program once more failed:\n{done.stderr}")
    return done.stdout


def archives(build, system, program):
    """The static libraries of others that the program takes code from."""
    with tempfile.TemporaryDirectory() as d:
        trace = link(build, link_command(build, system, program), os.path.join(d, "again"))
    return sorted({os.path.realpath(path) for path in re.findall(r"(?m)^\(?(/\S+?\.a)\b", trace)})


def made_by_us():
    """{archive: package of build/sources.txt}, as build/libraries makes them."""
    with open(os.path.join(TREE, "build/libraries"), encoding="utf-8") as f:
        found = re.findall(r"(?m)^\tlibrary ([a-z-]+) ([a-z]+) ", f.read())
    return {f"lib{name}.a": package for package, name in found}


def archive_files(system):
    """[(package, file, SHA-256)] of build/sources.txt: what out/libraries was made from."""
    taken = os.path.join(TREE, "out/libraries", system, "sources")
    if not os.path.exists(taken):
        return []
    with open(taken, encoding="utf-8") as f:
        return [tuple(line.split()) for line in f]


def sources(system):
    """{package: (file, SHA-256)}: the archives among these."""
    return {package: (name, digest) for package, name, digest in archive_files(system) if ".orig.tar." in name}


def upstream_version(archive):
    return re.sub(r"^[^_]*_|\.orig\.tar.*", "", archive)


def owners(paths, system):
    """{Debian package, or archive of build/sources.txt: [static libraries]}"""
    ours, listed, ret = made_by_us(), sources(system), {}
    for path in paths:
        if os.path.realpath(path).startswith(os.path.realpath(os.path.join(TREE, "out/libraries")) + "/"):
            owner = listed[ours[os.path.basename(path)]][0]
        else:
            owner = output_of("dpkg", "-S", path).split(":")[0]
        ret.setdefault(owner, []).append(path)
    return ret


def arm64_packages():
    """{package: (version, version of its source)} of what build/sysroot has unpacked."""
    with open(os.path.join(TREE, "out/arm64/packages"), encoding="utf-8") as f:
        return {name: versions for name, *versions in (line.rstrip("\n").split("\t") for line in f)}


def of_this_gcc(name):
    """A package that has GCC's version in its name, on Linux: that of the GCC that is here."""
    here = output_of("gcc", "-dumpversion").split(".")[0]
    return re.sub(r"^(gcc-|libgcc-|libstdc\+\+-)\d+", rf"\g<1>{here.strip()}", name)


def third_parties(system):
    """[(library, version, licence, package or archive, source package)] of THIRD-PARTY.md. Where a library could
    be made from several archives, the one that it was made from; and the packages of the GCC that is here.
    ARM64 has what Linux has."""
    with open(os.path.join(TREE, "THIRD-PARTY.md"), encoding="utf-8") as f:
        part = next(p for p in f.read().split("\n## ") if p.lower().startswith(HEADINGS[system] + "\n"))
    taken, ret = sources(system), []
    for row in re.findall(r"^\| (.*) \|$", part, re.M)[1:]:
        library, version, licence, owner, source = row.split(" | ")
        if ".tar." in owner and source in taken:
            owner = taken[source][0]
            version = re.sub(r"\+.*", "", upstream_version(owner))
        elif system != "windows":
            owner, source = of_this_gcc(owner), of_this_gcc(source)
        ret.append((library, version, licence, owner, source))
    return ret
