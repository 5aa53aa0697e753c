"""Crash tests of everything that writes files: see crash.sh.

    crash.py BIN MODEL TIMES SEED
"""

import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

binaries, model, times, seed = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
work = tempfile.mkdtemp(prefix="dtkc-crash-")
ROOM = 1 << 30
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def program(name, *arguments):
    return [f"{binaries}/{name}", *map(str, arguments)]


def place(name):
    folder = os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    return folder


def must(condition, text):
    if not condition:
        # What is on a disk of its own stays, too, to be looked at; `umount` it then.
        sys.exit(f"error: {text} (seed {seed}; the files are in {work})")


def digest(path):
    with open(path, "rb") as file:
        content = file.read()
    # Wall times are all that differs between two runs.
    if path.endswith("log.jsonl"):
        content = re.sub(rb',"seconds":.*', b"", content)
    if path.endswith("summary.json"):
        content = re.sub(rb'\n  "timing": \{.*', b"", content, flags=re.S)
    return hashlib.sha256(content).hexdigest()


def files(folder):
    """Every file below a folder with its sum; locks that stay are no content."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name != ".lock":
                path = os.path.join(root, name)
                found[os.path.relpath(path, folder)] = digest(path)
    return found


class Disk:
    """A small disk of its own at a folder, where this user may mount one."""

    def __init__(self, folder):
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder]
        self.mounted = shutil.which("mount") is not None and subprocess.run(command, **quiet).returncode == 0

    def leave(self, room):
        """So many bytes are left from now on."""
        state = os.statvfs(self.folder)
        size = (state.f_blocks - state.f_bfree) * state.f_frsize + max(room, 4096)
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)

    def unmount(self):
        if self.mounted:
            subprocess.run(["umount", self.folder], check=True)


class Job:
    """Something that writes files: a command, how to go on with it, and which of its files are final."""

    def __init__(self, name, first, again, unfinished=lambda name: False):
        self.name, self.first, self.again, self.unfinished = name, first, again, unfinished
        whole = place(f"{name}-whole")
        started = time.monotonic()
        subprocess.run(first(whole), cwd=whole, check=True, **quiet)
        self.seconds = time.monotonic() - started
        self.whole = files(whole)
        self.folder = place(name)
        self.disk = Disk(self.folder)
        self.begun = False
        self.counts = {"killed": 0, "ended by itself": 0, "could not write": 0}

    def command(self):
        return (self.again if self.begun else self.first)(self.folder)

    def check(self, complete):
        found = files(self.folder)
        for name, sum in found.items():
            hidden = os.path.basename(name).startswith(".")
            if name in self.whole and not self.unfinished(name):
                must(sum == self.whole[name], f"{self.name}: {name} is not what an undisturbed run writes")
            elif complete:
                must(name in self.whole, f"{self.name}: {name} was left behind")
                must(sum == self.whole[name], f"{self.name}: {name} differs from that of an undisturbed run")
            else:
                must(hidden or self.unfinished(name) or name in self.whole, f"{self.name}: {name} should not be there")
        if complete:
            must(set(found) == set(self.whole), f"{self.name}: {set(self.whole) ^ set(found)} is missing or too much")

    def over(self):
        """Done, or time for a new beginning."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        self.begun = False

    def kill(self):
        """Whether it was killed before its end."""
        child = subprocess.Popen(self.command(), cwd=self.folder, **quiet)
        time.sleep(chance.uniform(0, 1) * self.seconds)
        child.send_signal(signal.SIGKILL)
        ended = child.wait() == 0
        self.counts["ended by itself" if ended else "killed"] += 1
        self.begun = True
        self.check(complete=ended)
        if ended:
            self.over()
        return not ended

    def starve(self):
        """A disk that is full after some more bytes; where none can be mounted, a file that cannot grow beyond a size:
        the write fails in the same places. Whether it was told before its end."""
        largest = max(os.path.getsize(os.path.join(f"{self.folder}-whole", name)) for name in self.whole)
        size = int(chance.uniform(0, 1.1) * largest)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        full = self.disk.mounted and chance.random() < 0.5
        if full:
            self.disk.leave(size)
        options = {"cwd": self.folder, "preexec_fn": None if full else limit, "capture_output": True, "text": True}
        said = subprocess.run(self.command(), **options)
        if full:
            self.disk.leave(ROOM)
        self.begun = True
        if said.returncode == 0 and "its report could not be written" in said.stderr:
            # A run is complete without its page, and says so; going on writes it.
            self.counts["could not write"] += 1
            self.check(complete=False)
            return True
        if said.returncode == 0:
            self.counts["ended by itself"] += 1
            self.check(complete=True)
            self.over()
            return False
        must(said.returncode == 1 and "panicked" not in said.stderr, f"{self.name}: code {said.returncode}: {said.stderr}")
        must("error: " in said.stderr, f"{self.name}: no reason was given: {said.stderr}")
        self.counts["could not write"] += 1
        self.check(complete=False)
        return True

    def finish(self):
        subprocess.run(self.command(), cwd=self.folder, check=True, **quiet)
        self.check(complete=True)


def jobs():
    data = os.path.join(place("data"), "glyphs.h5")
    subprocess.run(program("dtkc-data", "synth", "--count", 40000, "--out", data), check=True, **quiet)
    few = os.path.join(place("data"), "few.h5")
    subprocess.run(program("dtkc-data", "synth", "--count", 600, "--seed", 3, "--out", few), check=True, **quiet)
    make = lambda folder: program("dtkc-data", "import", data, "--size", "32x32", "--force", "--out", "set.h5")
    label = lambda *more: program("dtkc-label", "--model", model, "--input", few, "--truth", "--probabilities", "--batch", 4, *more)
    parts = [os.path.join(place("parts"), f"{n}.csv") for n in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        more = ["--shard", f"{number}/3", "--output", part]
        subprocess.run(program("dtkc-label", "--model", model, "--input", data, *more), check=True, **quiet)
    photos = os.path.join(place("data"), "photos")
    subprocess.run(label("--output", os.path.join(place("data"), "few.csv"), "--sort-into", photos), check=True, **quiet)
    export = lambda *more: program(
        "dtkc-label", "--model", model, "--input", photos, "--output", "out.csv", "--export", "label-studio=tasks.json",
        "--export", "cvat=tags.xml", "--export", "fiftyone=fiftyone.json", "--export", "coco=coco", *more)
    merge = lambda folder: program("dtkc-label", "merge", *parts, "--force", "--output", "all.parquet")
    journal = lambda name: ".journal" in name
    small = ["--set", "network.hidden=16", "--set", "network.blocks=[{filters=8,kernel=5},{filters=8,kernel=3}]"]
    fit = lambda folder: program(
        "dtkc-train", "fit", "--data", few, "--clusters", 10, "--seed", 1, "--runs", 2, "--epochs", 4, "--no-prune",
        "--checkpoint-every", "50ms", "--quiet", "--force", "--out", "run", *small)
    resume = lambda folder: program("dtkc-train", "resume", "run", "--quiet") \
        if os.path.exists(f"{folder}/run/config.toml") else fit(folder)
    # Checkpoints and the log grow with the run; what they hold is what the run goes on with.
    growing = lambda name: "checkpoints" in name or name.endswith(("log.jsonl", "summary.json"))
    found = [Job("import", make, make)]
    for ending in ("csv", "h5"):
        again = lambda folder, ending=ending: label("--resume", "--output", f"out.{ending}")
        first = lambda folder, ending=ending: label("--output", f"out.{ending}")
        found.append(Job(f"label-{ending}", first, again, journal))
    found.append(Job("label-export", lambda folder: export(), lambda folder: export("--resume"), journal))
    return [*found, Job("merge", merge, merge)], Job("fit", fit, resume, growing)


def request(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "PUT"
    head = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, head, method=method), timeout=10) as answer:
        return json.load(answer)


def rename(rounds):
    """A service that is killed while clusters are renamed: what was acknowledged is there after the next start."""
    state = place("rename")
    acknowledged, sent = {}, {}
    for round in range(rounds):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = program("dtkc-serve", "--model", model, "--port", port, "--workers", 1, "--state-dir", state)
        server = subprocess.Popen(command, **quiet)
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                request(f"{url}/v1/models")
                break
            except OSError:
                time.sleep(0.05)
        clusters = request(f"{url}/v1/models/mnist")["clusters"]
        for cluster, name in acknowledged.items():
            must(clusters[cluster]["name"] in (name, sent[cluster]), f"rename: cluster {cluster} lost its name {name}")

        def work_on():
            number = 0
            while True:
                cluster, name = number % 10, f"name {round}-{number}"
                sent[cluster] = name
                try:
                    request(f"{url}/v1/models/mnist/clusters/{cluster}", {"name": name})
                except (OSError, ValueError):
                    return
                acknowledged[cluster] = name
                number += 1

        client = threading.Thread(target=work_on)
        client.start()
        time.sleep(chance.uniform(0, 0.3))
        server.send_signal(signal.SIGKILL)
        server.wait()
        client.join()
        for name in os.listdir(state):
            if name.endswith(".names.json"):
                with open(os.path.join(state, name)) as file:
                    json.load(file)
    return rounds


writers, trainer = jobs()
trained, renamed = times // 10, times // 10
# What came to its end first does not count.
left = times - trained - renamed
while left > 0:
    job = chance.choice(writers)
    left -= job.starve() if chance.random() < 0.25 else job.kill()
while trained > 0:
    trained -= trainer.kill()
for job in [*writers, trainer]:
    job.finish()
    counts = ", ".join(f"{count} {what}" for what, count in job.counts.items() if count)
    job.disk.unmount()
    print(f"{job.name:10} {counts}; then to its end, the same {len(job.whole)} files to the byte")
print(f"rename     {rename(renamed)} killed; every acknowledged name was there after the next start")
print(f"seed {seed}")
shutil.rmtree(work)
