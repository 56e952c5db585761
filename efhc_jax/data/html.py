"""A dataset in a notebook."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

from efhc_jax.errors import DataError
from efhc_jax.text.html import row, table

if TYPE_CHECKING:
    from efhc_jax.data.dataset import Dataset

_MOST_SAMPLES = 10


_LARGEST_SAMPLE = 64  # pixels per side


def dataset_html(data: Dataset) -> str:
    """A table about a dataset, and a row of samples."""
    from efhc_jax.data.dataset import check_dataset

    title = f"<strong>Dataset {html.escape(str(data.name))}</strong>"
    try:
        check_dataset(data)
    except DataError as error:
        return f"<div>{title}<p>{html.escape(str(error))}</p></div>"
    rows = [
        row("training samples", f"{len(data.train_images):,}"),
        row("test samples", f"{len(data.test_images):,}"),
        row("image shape", " × ".join(map(str, data.train_images.shape[1:]))),
        row("classes", data.classes),
        row("digest", data.digest),
    ]
    return f"<div>{title}{table(rows)}{_samples(data)}</div>"


def _samples(data: Dataset) -> str:
    """The first training image of each class, in one image."""
    import numpy as np
    from PIL import Image

    _, first = np.unique(data.train_labels, return_index=True)
    step = -(-max(data.train_images.shape[1:]) // _LARGEST_SAMPLE)
    images = data.train_images[first[:_MOST_SAMPLES], ::step, ::step]
    picture = np.concatenate(list(np.pad(images, ((0, 0), (0, 0), (0, 2)))), axis=1)
    composed = io.BytesIO()
    Image.fromarray(picture).save(composed, "PNG")
    source = base64.b64encode(composed.getvalue()).decode()
    height = max(2 * picture.shape[0], 32)
    style = f"height: {height}px; image-rendering: pixelated"
    return f'<img alt="a sample of each class" style="{style}" src="data:image/png;base64,{source}"/>'
