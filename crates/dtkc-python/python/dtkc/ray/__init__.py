"""Many machines with Ray: shards are labelled, restarts and sweeps are trained.

>>> dtkc.ray.label("/shared/images/*.parquet", "/shared/labels", "groups.onnx")
>>> dtkc.ray.fit("/shared/photos.h5", "/shared/run", clusters=10, restarts=20)

or ``python -m dtkc.ray label ...``, ``python -m dtkc.ray fit ...``. An existing cluster is found through ``RAY_ADDRESS``; without one Ray is started on
this machine. Inputs, outputs and their paths must be the same on all nodes.

Whatever is done is on the shared storage, whole or not at all, and not in Ray: a job that was killed is started again with the same command and goes on.
"""

from ._fit import Fitted, compare, fit, resume, sweep
from ._label import Summary, label

__all__ = ["Fitted", "Summary", "compare", "fit", "label", "resume", "sweep"]
