"""What scripts/test-stores.sh checks: the same answers from Azure's emulator as from the disk."""
import os
import pathlib
import subprocess
import sys
import time

from azure.core.exceptions import ServiceRequestError
from azure.storage.blob import BlobServiceClient
from PIL import Image

# The emulator's account and key are published; they open nothing else.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

work, port = pathlib.Path(sys.argv[1]), sys.argv[2]
endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
environment = {
    **os.environ,
    "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
    "AZURE_STORAGE_ACCOUNT_KEY": KEY,
    "AZURE_STORAGE_ENDPOINT": endpoint,
    "AZURE_ALLOW_HTTP": "true",
    "DTKC_WORK_DIR": str(work / "work"),
}
client = BlobServiceClient(endpoint, credential={"account_name": ACCOUNT, "account_key": KEY})


def run(*arguments, code=0, words=""):
    done = subprocess.run(arguments, cwd=work, env=environment, capture_output=True, text=True)
    assert done.returncode == code and words in done.stderr, (arguments, done)
    return done


def blob(name):
    return client.get_blob_client("container", name)


for _ in range(600):
    try:
        client.create_container("container")
        break
    except ServiceRequestError:
        time.sleep(0.1)
for number in range(100):
    path = work / f"photos/{('cat', 'dog')[number % 2]}/img{number}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.frombytes("L", (28, 28), bytes((i * number) % 256 for i in range(784))).save(path)
    blob(str(path.relative_to(work))).upload_blob(path.read_bytes())

run("dtkc-data", "import", "photos", "--labels-from-folders", "--out", "local.h5")
run("dtkc-data", "import", "az://container/photos/", "--labels-from-folders", "--out", "remote.h5")
assert (work / "local.h5").read_bytes() == (work / "remote.h5").read_bytes()

target = "az://container/sets/photos.h5"
run("dtkc-data", "import", "az://container/photos/", "--labels-from-folders", "--out", target)
assert blob("sets/photos.h5").download_blob().readall() == (work / "local.h5").read_bytes()
run("dtkc-data", "import", "photos", "--out", target, code=1, words="it exists already")

# Large enough to go in parts.
run("dtkc-data", "import", "photos", "--size", "640x640", "--out", "large.h5")
run("dtkc-data", "import", "photos", "--size", "640x640", "--out", "az://container/large.h5")
assert blob("large.h5").download_blob().readall() == (work / "large.h5").read_bytes()

run("dtkc-label", "--model", "mnist", "--input", "photos", "--output", "local.csv")
run("dtkc-label", "--model", "mnist", "--input", "az://container/photos", "--output", "az://container/labels.csv")
labels = blob("labels.csv").download_blob().readall().decode()
assert labels.replace("az://container/", "") == (work / "local.csv").read_text()

run("dtkc-data", "import", "az://container/none", "--out", "x.h5", code=1, words="no such object and no such folder")
run("dtkc-data", "import", "az://nowhere/none", "--out", "x.h5", code=1, words="there is no container 'nowhere'")
environment["AZURE_STORAGE_ACCOUNT_KEY"] = "d3Jvbmc="
run("dtkc-data", "import", "az://container/photos", "--out", "x.h5", code=1, words="az://container/photos: ")
assert not list((work / "work").iterdir())
print("Azure's emulator gives what the disk gives")
