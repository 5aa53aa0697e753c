"""What people call images and sequences, as the few forms that the compiled half takes."""

import io
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ._dtkc import Error

#: Items of an array that are turned into bytes or written at a time.
CHUNK = 4096


@dataclass
class Pixels:
    """Images of one size, `[n, h, w, c]`: bytes as they are, or numbers that become bytes by `scale`."""

    array: np.ndarray
    scale: tuple | None = None

    def __len__(self):
        return len(self.array)

    @property
    def shape(self):
        return self.array.shape[1:]

    def chunks(self):
        """Contiguous bytes, some images at a time; an array of bytes is never copied as a whole."""
        for start in range(0, len(self.array), CHUNK):
            yield as_bytes(self.array[start : start + CHUNK], self.scale)


@dataclass
class Files:
    """Image files, by content (bytes) or path."""

    files: list

    def __len__(self):
        return len(self.files)


@dataclass
class Column:
    """Image files in a column of a table: one after the other, with the places where each begins."""

    data: np.ndarray
    offsets: np.ndarray
    missing: np.ndarray | None = None

    def __len__(self):
        return len(self.offsets) - 1


@dataclass
class Sequences:
    """Sequences one after the other: values `[steps, dim]`, and where each begins, and the end."""

    values: np.ndarray
    offsets: np.ndarray
    #: Whether these are plain rows, each a sequence of one step.
    rows: bool = field(default=False)

    def __len__(self):
        return len(self.offsets) - 1


def as_bytes(array, scale):
    """Numbers as bytes 0..255; `scale` is what becomes 0 and 255, nothing keeps them."""
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    values = array.astype(np.float32)
    if scale is not None:
        low, high = scale
        values = (values - np.float32(low)) * np.float32(255.0 / (high - low) if high > low else 0.0)
    # Halves go up, as they do in the programs; in double precision, where the sum is exact.
    return np.ascontiguousarray(np.clip(np.floor(values.astype(np.float64) + 0.5), 0, 255).astype(np.uint8))


def scale_of(array, fixed=False):
    """What becomes 0 and 255, chosen by the range as `dtkc-data import` does; nothing where numbers are 0 to 255 already.

    With `fixed`, for items that come one by one, a range that would depend on the others is refused.
    """
    if array.dtype == np.uint8 or array.size == 0:
        return None
    if array.dtype == bool:
        return (0.0, 1.0)
    low, high = np.inf, -np.inf
    for start in range(0, len(array), CHUNK):
        part = array[start : start + CHUNK]
        low, high = min(low, float(part.min())), max(high, float(part.max()))
    if not (np.isfinite(low) and np.isfinite(high)):
        raise Error("the images hold values that are no numbers (NaN or infinite); replace them first")
    if low >= 0 and 128 <= high <= 255:
        return None
    if low >= 0 and high <= 1:
        return (0.0, 1.0)
    if -1 <= low < -0.5 and high <= 1:
        return (-1.0, 1.0)
    if fixed:
        raise Error(f"the images hold values from {low:g} to {high:g}; give uint8, or numbers from 0 to 1 or 0 to 255")
    return (low, high)


def images_of(array):
    """An array of images as `[n, h, w, c]`; nothing where it is none."""
    if array.dtype.kind not in "uifb":
        return None
    if array.ndim == 3:
        return array[..., None]
    if array.ndim != 4:
        return None
    if array.shape[3] in (1, 3, 4):
        return array
    if array.shape[1] in (1, 3, 4):  # PyTorch's order
        return np.moveaxis(array, 1, 3)
    return array


def is_path(item):
    return isinstance(item, (str, os.PathLike))


def encoded(image):
    """A PIL image as the content of a file that loses nothing."""
    kept = io.BytesIO()
    if image.mode not in ("1", "L", "LA", "RGB", "RGBA", "I;16"):
        image = image.convert("RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB")
    image.save(kept, "PNG", compress_level=1)
    return kept.getvalue()


def is_picture(item):
    """Whether something is a PIL image; PIL itself is not needed to know."""
    return any(kind.__module__.startswith("PIL.") for kind in type(item).__mro__)


def files_of(items):
    """A list of paths, contents of files and PIL images; nothing where it holds something else."""
    made = []
    for item in items:
        if is_path(item):
            made.append(os.fspath(item))
        elif isinstance(item, bytes):
            made.append(item)
        elif isinstance(item, (bytearray, memoryview)):
            made.append(bytes(item))
        elif is_picture(item):
            made.append(encoded(item))
        else:
            return None
    return Files(made)


def sequences_of(items):
    """A list of arrays `[steps, dim]` or `[steps]`, one for each sequence."""
    arrays = [np.asarray(item, dtype=np.float32) for item in items]
    arrays = [array[:, None] if array.ndim == 1 else array for array in arrays]
    dims = {array.shape[1] for array in arrays if array.ndim == 2}
    if len(dims) != 1 or any(array.ndim != 2 for array in arrays):
        raise Error("sequences are arrays [steps, dim] with one dim for all, or [steps]; some are something else")
    offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    return Sequences(np.ascontiguousarray(np.concatenate(arrays)), offsets)


def rows_of(array):
    """Plain rows of numbers: each is a sequence of one step."""
    values = np.ascontiguousarray(array, dtype=np.float32)
    return Sequences(values, np.arange(len(values) + 1, dtype=np.int64), rows=True)


def column_of(array):
    """A column of Arrow: binary, or a struct that holds `bytes`; its buffers are used where they lie."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_struct(array.type):
        names = [array.type.field(place).name for place in range(array.type.num_fields)]
        if "bytes" not in names:
            raise Error(f"a column of images is binary, or a struct with `bytes`; this one has {', '.join(names)}")
        array = array.flatten()[names.index("bytes")]  # nulls of the struct go with it
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return Files([item if item is not None else b"" for item in array.to_pylist()])
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise Error(f"a column of images is binary, or a struct with `bytes`; this one is {array.type}")
    if len(array) == 0:
        return Files([])
    array = array.cast(pa.large_binary())
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    missing = np.asarray(array.is_null()) if array.null_count else None
    return Column(data, np.ascontiguousarray(offsets), missing)


def is_arrow(items):
    return type(items).__module__.split(".")[0] == "pyarrow"


def understand(items, shape=None, kind=None, scale="any"):
    """Whatever was given as :class:`Pixels`, :class:`Files`, :class:`Column` or :class:`Sequences`.

    `shape` is that of images whose rows are flat; `kind`, "images" or "sequences", settles what an array alone does not say; `scale`: "any"
    chooses a range of numbers by all of them, "fixed" refuses where that depends on the others, and a pair or nothing is what was chosen before.
    """
    if is_arrow(items):
        return column_of(items)
    if is_path(items):
        raise Error(f"{items}: give a list of paths, [{str(items)!r}], for one image")
    if not hasattr(items, "__array__") and not hasattr(items, "__len__"):
        items = list(items)
    if isinstance(items, (list, tuple)) and not items:
        return Files([])
    if isinstance(items, (list, tuple)):
        files = files_of(items)
        if files is not None:
            return files
        first = items[0]
        if hasattr(first, "__array__") and kind != "images":
            arrays = [np.asarray(item) for item in items]
            same = len({array.shape for array in arrays}) == 1
            if kind == "sequences" or not same or (arrays[0].ndim == 2 and arrays[0].dtype.kind == "f"):
                return sequences_of(arrays)
            items = np.stack(arrays)
    array = items if isinstance(items, np.ndarray) else np.asarray(items)
    if array.dtype == object:
        return understand(list(array), shape, kind, scale)
    if array.ndim == 2 and shape is not None:
        array = _unfolded(array, shape)
    if kind == "sequences" and array.ndim == 3:
        return sequences_of(list(array))
    if array.ndim == 2:
        return rows_of(array)
    images = images_of(array)
    if images is None:
        raise Error(f"an array of {array.ndim} dimensions and type {array.dtype} is neither images ([n, h, w] or [n, h, w, c]) nor rows ([n, d])")
    if scale in ("any", "fixed"):
        scale = scale_of(images, fixed=scale == "fixed")
    return Pixels(images, scale)


def _unfolded(array, shape):
    shape = tuple(shape)
    wanted = int(np.prod(shape))
    if len(shape) not in (2, 3) or wanted != array.shape[1]:
        raise Error(f"rows of {array.shape[1]} values are no images of shape {shape}; (height, width) or (height, width, channels) must have as many")
    return array.reshape(len(array), *shape)


def name_of(path):
    return Path(path).stem or "data"
