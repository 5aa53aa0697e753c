#!/usr/bin/env python3
"""One feature set for every way of building the workspace.

Cargo decides the features of a dependency by the packages that are built together. A program built alone then gets other
features of some small crate than in the whole workspace, and everything above that crate, burn too, is compiled a second
time. The crate dtkc-features has no code: it names the small crates whose features differ, with all the features that any
part of the workspace asks for, and the programs depend on it.

    python3 scripts/features.py            writes crates/dtkc-features/Cargo.toml anew
    python3 scripts/features.py --check    fails where a program alone would compile something again

Nothing is compiled: cargo only plans. The plan is an unstable output of cargo, hence RUSTC_BOOTSTRAP.
"""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MANIFEST = ROOT / "crates/dtkc-features/Cargo.toml"
WHOLE = ["--workspace", "--all-targets"]
PARTS = [
    ["-p", "dtkc-train"],
    ["-p", "dtkc-train", "--all-targets"],
    ["-p", "dtkc-label"],
    ["-p", "dtkc-serve"],
    ["-p", "dtkc-label", "-p", "dtkc-serve"],
    ["-p", "dtkc-data"],
    ["-p", "dtkc-python"],
    # What is tested alone while somebody works on it, and stands on much.
    ["-p", "dtkc-core", "--all-targets"],
    ["-p", "dtkc-methods", "--all-targets"],
    ["-p", "dtkc-data", "--all-targets"],
    ["-p", "dtkc-label", "--all-targets"],
    ["-p", "dtkc-serve", "--all-targets"],
    ["--bins"],
]
BEGIN = "# Written by scripts/features.py.\n"


def plan(selection):
    """Features by (name, version, for the host): a set of feature lists, because one graph may hold several."""
    command = ["cargo", "build", "--release", "--unit-graph", "-Z", "unstable-options", *selection]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if output.returncode != 0:
        sys.exit(f"cargo could not plan {' '.join(selection)}: {output.stderr.strip()}")
    found = {}
    for unit in json.loads(output.stdout)["units"]:
        kinds = set(unit["target"]["kind"])
        if unit["mode"] != "build" or not kinds & {"lib", "rlib", "proc-macro"} or unit["pkg_id"].startswith("path+"):
            continue
        name, version = unit["pkg_id"].rsplit("#", 1)[1].rsplit("@", 1) if "@" in unit["pkg_id"] else (None, None)
        if name is None:
            continue
        # Build scripts and macros are compiled without optimisation, for the host.
        host = unit["profile"]["opt_level"] == "0"
        found.setdefault((name, version, host), set()).add(tuple(sorted(unit["features"])))
    return found


def differing():
    """What some part of the workspace would compile with other features than the whole."""
    whole = plan(WHOLE)
    return {
        key: whole.get(key, set())
        for part in PARTS
        for key, features in plan(part).items()
        if not features <= whole.get(key, set())
    }


def named():
    """The crates that the manifest names already: table -> key -> line."""
    tables, table = {"dependencies": {}, "build-dependencies": {}}, None
    for line in MANIFEST.read_text().splitlines():
        if line.startswith("["):
            table = tables.get(line.strip("[]"))
        elif table is not None and "=" in line:
            table[line.split(" ", 1)[0]] = line
    return tables


def write(tables):
    text = MANIFEST.read_text().split(BEGIN)[0] + BEGIN
    for name, entries in tables.items():
        text += f"[{name}]\n" + "".join(f"{line}\n" for _, line in sorted(entries.items())) + "\n"
    MANIFEST.write_text(text.rstrip() + "\n")


def add(tables, differences):
    for (name, version, host), lists in differences.items():
        features = sorted(set().union(*lists)) if lists else []
        release = version.split("+")[0]
        short = ".".join(release.split(".")[: 2 if release.startswith("0.") else 1])
        key = f"{name}-{short.replace('.', '-')}"
        quoted = ", ".join(f'"{feature}"' for feature in features)
        line = f'{key} = {{ package = "{name}", version = "{release}", default-features = false, features = [{quoted}] }}'
        tables["build-dependencies" if host else "dependencies"][key] = line


def main():
    differences = differing()
    if "--check" in sys.argv:
        for name, version, host in sorted(differences):
            print(f"{name} {version}{' (for the host)' if host else ''} has other features in a part of the workspace")
        sys.exit("run scripts/features.py and commit what it writes" if differences else 0)
    tables = named()
    for _ in range(12):
        if not differences:
            break
        add(tables, differences)
        write(tables)
        differences = differing()
        print(f"{sum(map(len, tables.values()))} crates named, {len(differences)} differ")
    sys.exit(0 if not differences else "the features do not settle")


if __name__ == "__main__":
    main()
