"""Fashion-MNIST through TensorFlow Datasets, without TensorFlow.

TFDS reads `array_record` files without TensorFlow, but its own builder needs it to unpack the
downloads and to encode the images. `_builder` overrides just those two steps. It writes TFDS's
standard layout, and a copy that TFDS prepared itself is read the same way.

TFDS stores records in the order of a hash of their keys. The key of an image is its index in the
IDX file, so `_original_order` recomputes the hashes and restores the order: the arrays are bitwise
equal to those of the IDX files, and the same checksums apply to both.
"""

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from efhc_jax.data.idx import IdxFile, IdxSet, Pixels, damaged, read_idx_directory, read_idx_file
from efhc_jax.disk.caches import home
from efhc_jax.errors import DataError

_NAME = "fashion_mnist"
_FILE_FORMAT = "array_record"
_LONGEST_WAIT = 10.0  # seconds, for a connection and then for an answer


def standard_directory() -> Path | None:
    """The default directory of TFDS: `TFDS_DATA_DIR` or that in the home directory, if there is one."""
    if given := os.environ.get("TFDS_DATA_DIR"):
        return Path(given)
    at_home = home()
    return None if at_home is None else at_home / "tensorflow_datasets"


def find_prepared(directory: Path) -> Path | None:
    """The newest readable Fashion-MNIST under a TFDS directory, or None.

    A copy in another record format than `array_record` counts as absent, because reading it needs
    TensorFlow. Only the description files are read, so TFDS is not imported.
    """
    descriptions = sorted(directory.glob(f"{_NAME}/*/dataset_info.json"), reverse=True)
    for description in descriptions:
        try:
            file_format = json.loads(description.read_bytes()).get("fileFormat")
        except (OSError, ValueError, AttributeError) as error:
            raise damaged(description, f"cannot be read ({error})") from error
        if file_format == _FILE_FORMAT:
            return description.parent
    return None


def read_prepared(prepared: Path) -> list[Pixels]:
    """Read the four arrays, in the order of the IDX files; the caller verifies their contents.

    Args:
        prepared: The directory of one version, as `find_prepared` returns it.

    Raises:
        DataError: TFDS cannot read its files.
    """
    tfds = _import_tfds()
    try:
        builder = tfds.builder_from_directory(prepared)
        train_images, train_labels = _read_split(builder, "train")
        test_images, test_labels = _read_split(builder, "test")
    except Exception as error:  # for a damaged record, whatever its decoder raises
        raise damaged(prepared, f"cannot be read by TensorFlow Datasets ({error})") from error
    return [train_images, train_labels, test_images, test_labels]


def prepare(directory: Path, files: IdxSet, idx_directory: Path | None = None) -> Path:
    """Prepare Fashion-MNIST under a TFDS directory and return its path.

    An earlier preparation is overwritten; files that were downloaded before are reused.

    Args:
        directory: The TFDS directory to write to.
        files: The expected contents of the files, to verify downloads.
        idx_directory: A directory with the IDX files; None downloads them.

    Raises:
        DataError: The download failed, or the files are not the originals.
    """
    tfds = _import_tfds()
    arrays = None
    if idx_directory is not None:
        arrays = read_idx_directory(idx_directory, files, "data_dir")
    builder = _builder(directory, files, arrays)
    config = tfds.download.DownloadConfig(download_mode=tfds.GenerateMode.REUSE_CACHE_IF_EXISTS)
    try:
        builder.download_and_prepare(download_config=config)
    except DataError:
        raise
    except Exception as error:  # TFDS, requests and the file system each raise their own
        raise DataError(
            f"fashion_mnist could not be prepared by TensorFlow Datasets under {directory}: "
            f"{error}; check the network and the disk, or give a directory that contains "
            f"the four IDX files as data_dir"
        ) from error
    return Path(builder.data_dir)


def _import_tfds() -> Any:
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise DataError(
            f"TensorFlow Datasets cannot be imported ({error}); try "
            f"`pip install tensorflow-datasets importlib_resources array_record`"
        ) from error
    return tensorflow_datasets


def _builder(directory: Path, files: IdxSet, arrays: list[Pixels] | None) -> Any:
    """TFDS's own Fashion-MNIST builder, with the two steps replaced that need TensorFlow.

    The class is defined here, not at the top of the module, so that TFDS is imported late.
    """
    from PIL import Image
    from tensorflow_datasets.image_classification.mnist import FashionMNIST

    class FashionMnistWithoutTensorflow(FashionMNIST, skip_registration=True):  # type: ignore[call-arg]
        """Reads the gzip files itself and yields PIL images, which TFDS encodes without TensorFlow."""

        name = _NAME  # the standard name, hence the standard layout

        def _info(self) -> Any:
            info = super()._info()
            info.initialize_from_bucket = lambda: None  # finds nothing, and leaves a folder in /tmp
            return info

        def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
            train_images, train_labels, test_images, test_labels = (
                _download(dl_manager, self.URL, files) if arrays is None else arrays
            )
            return {
                "train": self._generate_examples(train_images, train_labels),
                "test": self._generate_examples(test_images, test_labels),
            }

        def _generate_examples(self, images: Pixels, labels: Pixels) -> Any:
            for index, (image, label) in enumerate(zip(images, labels, strict=True)):
                yield index, {"image": Image.fromarray(image), "label": int(label)}

    return FashionMnistWithoutTensorflow(data_dir=directory, file_format=_FILE_FORMAT)


def _download(dl_manager: Any, url: str, files: IdxSet) -> list[Pixels]:
    """Download the four files through TFDS, which checks its own checksums, and read them."""
    downloaded = Path(dl_manager.download_dir)
    if not all(any(downloaded.rglob(f"*{file.name}*.gz")) for file in files):
        _check_reachable(f"{url}{files[0].name}.gz")
    paths = dl_manager.download({file.name: f"{url}{file.name}.gz" for file in files})
    return [_read_download(Path(paths[file.name]), file) for file in files]


def _check_reachable(url: str) -> None:
    """Raise soon if nobody answers; TFDS would try again for minutes, or wait for ever."""
    import requests

    try:
        requests.get(url, stream=True, timeout=_LONGEST_WAIT).close()
    except requests.RequestException as error:
        reason = "no answer in time" if isinstance(error, requests.Timeout) else "no connection"
        raise DataError(
            f"fashion_mnist could not be downloaded from {url} ({reason}); check the network, "
            "or give a directory that holds the four IDX files as data_dir"
        ) from None


def remove_temporary(directory: Path) -> None:
    """Remove what TFDS leaves under its directory when it fails or is stopped, and empty folders.

    Nobody may be preparing there meanwhile.
    """
    half_made = [
        *directory.glob(f"{_NAME}/incomplete.*"),
        *directory.glob(f"downloads/**/*.tmp.{'[0-9a-f]' * 32}"),
    ]
    for folder in half_made:
        shutil.rmtree(folder, ignore_errors=True)
    folders = [path for path in directory.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):  # it holds something
            folder.rmdir()


def _read_download(path: Path, file: IdxFile) -> Pixels:
    """Read a downloaded file; a wrong one is removed, since TFDS would reuse it next time."""
    try:
        return read_idx_file(path, file)
    except DataError:
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.INFO").unlink(missing_ok=True)  # TFDS's metadata
        raise


def _read_split(builder: Any, split: str) -> tuple[Pixels, Pixels]:
    """Images (N, height, width) and labels (N,) of one split, in the order of the IDX files."""
    source = builder.as_data_source(split)
    records = source.__getitems__(range(len(source)))  # one batched read, much faster than N
    stored_images = np.stack([record["image"][..., 0] for record in records])
    stored_labels = np.array([record["label"] for record in records], np.uint8)
    order = _original_order(split, len(records))
    return stored_images[order], stored_labels[order]


def _original_order(split: str, count: int) -> npt.NDArray[np.intp]:
    """For each sample of the IDX file, its position in TFDS's storage.

    TFDS sorts by a salted hash of the key, and guarantees not to change that within a version.
    """
    from tensorflow_datasets.core.hashing import Hasher

    hash_key = Hasher(split).hash_key
    stored = np.array(sorted(range(count), key=hash_key), np.intp)  # sample at each position
    return np.argsort(stored)
